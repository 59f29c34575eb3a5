@sums = internal addrspace(3) global [9 x float] undef, align 16

declare i32 @llvm.nvvm.read.ptx.sreg.tid.x()
declare i32 @llvm.nvvm.read.ptx.sreg.ctaid.x()
declare i32 @llvm.nvvm.read.ptx.sreg.ctaid.y()
declare i32 @llvm.nvvm.read.ptx.sreg.ctaid.z()
declare i32 @llvm.nvvm.read.ptx.sreg.ntid.x()
declare i32 @llvm.nvvm.read.ptx.sreg.nctaid.x()
declare void @llvm.nvvm.barrier.cta.sync.aligned.all(i32)

declare float @llvm.nvvm.shfl.sync.up.f32(i32, float, i32, i32)
define ptx_kernel void @running_sum_float(ptr addrspace(1) %x, ptr addrspace(1) %out, i64 %length_, i64 %inner_, i64 %backwards_) "nvvm.maxntid"="256" {
entry:
  %m18 = alloca float, align 64
  %m22 = alloca i64, align 64
  %v1 = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %v2 = sext i32 %v1 to i64
  %v3 = call i32 @llvm.nvvm.read.ptx.sreg.ctaid.x()
  %v4 = sext i32 %v3 to i64
  %v5 = call i32 @llvm.nvvm.read.ptx.sreg.ctaid.y()
  %v6 = sext i32 %v5 to i64
  %v7 = call i32 @llvm.nvvm.read.ptx.sreg.ctaid.z()
  %v8 = sext i32 %v7 to i64
  %v9 = udiv i64 %v4, %inner_
  %v10 = mul i64 %v9, %inner_
  %v11 = mul i64 %v10, %length_
  %v12 = mul i64 %v9, %inner_
  %v13 = sub i64 %v4, %v12
  %v14 = add i64 %v11, %v13
  %v15 = icmp ne i64 %backwards_, 0
  %v16 = and i64 %v2, 31
  %v17 = sdiv i64 %v2, 32
  store float 0x0000000000000000, ptr %m18
  store i64 0, ptr %m22
  br label %L19
L19:
  %v23 = load i64, ptr %m22
  %v24 = icmp slt i64 %v23, %length_
  br i1 %v24, label %L20, label %L21
L20:
  %v25 = mul i64 %v2, 8
  %v26 = add i64 %v23, %v25
  %v27 = add i64 %v26, 0
  %v28 = icmp slt i64 %v27, %length_
  %v29 = add i64 %v26, 0
  %v30 = sub i64 %length_, 1
  %v31 = sub i64 %v30, %v29
  %v32 = select i1 %v15, i64 %v31, i64 %v29
  %v33 = mul i64 %v32, %inner_
  %v34 = add i64 %v14, %v33
  %v35 = select i1 %v28, i64 %v34, i64 %v14
  %v36 = getelementptr float, ptr addrspace(1) %x, i64 %v35
  %v37 = load float, ptr addrspace(1) %v36, align 4
  %v38 = select i1 %v28, float %v37, float 0x0000000000000000
  %v39 = add i64 %v26, 1
  %v40 = icmp slt i64 %v39, %length_
  %v41 = add i64 %v26, 1
  %v42 = sub i64 %length_, 1
  %v43 = sub i64 %v42, %v41
  %v44 = select i1 %v15, i64 %v43, i64 %v41
  %v45 = mul i64 %v44, %inner_
  %v46 = add i64 %v14, %v45
  %v47 = select i1 %v40, i64 %v46, i64 %v14
  %v48 = getelementptr float, ptr addrspace(1) %x, i64 %v47
  %v49 = load float, ptr addrspace(1) %v48, align 4
  %v50 = select i1 %v40, float %v49, float 0x0000000000000000
  %v51 = fadd float %v38, %v50
  %v52 = add i64 %v26, 2
  %v53 = icmp slt i64 %v52, %length_
  %v54 = add i64 %v26, 2
  %v55 = sub i64 %length_, 1
  %v56 = sub i64 %v55, %v54
  %v57 = select i1 %v15, i64 %v56, i64 %v54
  %v58 = mul i64 %v57, %inner_
  %v59 = add i64 %v14, %v58
  %v60 = select i1 %v53, i64 %v59, i64 %v14
  %v61 = getelementptr float, ptr addrspace(1) %x, i64 %v60
  %v62 = load float, ptr addrspace(1) %v61, align 4
  %v63 = select i1 %v53, float %v62, float 0x0000000000000000
  %v64 = fadd float %v51, %v63
  %v65 = add i64 %v26, 3
  %v66 = icmp slt i64 %v65, %length_
  %v67 = add i64 %v26, 3
  %v68 = sub i64 %length_, 1
  %v69 = sub i64 %v68, %v67
  %v70 = select i1 %v15, i64 %v69, i64 %v67
  %v71 = mul i64 %v70, %inner_
  %v72 = add i64 %v14, %v71
  %v73 = select i1 %v66, i64 %v72, i64 %v14
  %v74 = getelementptr float, ptr addrspace(1) %x, i64 %v73
  %v75 = load float, ptr addrspace(1) %v74, align 4
  %v76 = select i1 %v66, float %v75, float 0x0000000000000000
  %v77 = fadd float %v64, %v76
  %v78 = add i64 %v26, 4
  %v79 = icmp slt i64 %v78, %length_
  %v80 = add i64 %v26, 4
  %v81 = sub i64 %length_, 1
  %v82 = sub i64 %v81, %v80
  %v83 = select i1 %v15, i64 %v82, i64 %v80
  %v84 = mul i64 %v83, %inner_
  %v85 = add i64 %v14, %v84
  %v86 = select i1 %v79, i64 %v85, i64 %v14
  %v87 = getelementptr float, ptr addrspace(1) %x, i64 %v86
  %v88 = load float, ptr addrspace(1) %v87, align 4
  %v89 = select i1 %v79, float %v88, float 0x0000000000000000
  %v90 = fadd float %v77, %v89
  %v91 = add i64 %v26, 5
  %v92 = icmp slt i64 %v91, %length_
  %v93 = add i64 %v26, 5
  %v94 = sub i64 %length_, 1
  %v95 = sub i64 %v94, %v93
  %v96 = select i1 %v15, i64 %v95, i64 %v93
  %v97 = mul i64 %v96, %inner_
  %v98 = add i64 %v14, %v97
  %v99 = select i1 %v92, i64 %v98, i64 %v14
  %v100 = getelementptr float, ptr addrspace(1) %x, i64 %v99
  %v101 = load float, ptr addrspace(1) %v100, align 4
  %v102 = select i1 %v92, float %v101, float 0x0000000000000000
  %v103 = fadd float %v90, %v102
  %v104 = add i64 %v26, 6
  %v105 = icmp slt i64 %v104, %length_
  %v106 = add i64 %v26, 6
  %v107 = sub i64 %length_, 1
  %v108 = sub i64 %v107, %v106
  %v109 = select i1 %v15, i64 %v108, i64 %v106
  %v110 = mul i64 %v109, %inner_
  %v111 = add i64 %v14, %v110
  %v112 = select i1 %v105, i64 %v111, i64 %v14
  %v113 = getelementptr float, ptr addrspace(1) %x, i64 %v112
  %v114 = load float, ptr addrspace(1) %v113, align 4
  %v115 = select i1 %v105, float %v114, float 0x0000000000000000
  %v116 = fadd float %v103, %v115
  %v117 = add i64 %v26, 7
  %v118 = icmp slt i64 %v117, %length_
  %v119 = add i64 %v26, 7
  %v120 = sub i64 %length_, 1
  %v121 = sub i64 %v120, %v119
  %v122 = select i1 %v15, i64 %v121, i64 %v119
  %v123 = mul i64 %v122, %inner_
  %v124 = add i64 %v14, %v123
  %v125 = select i1 %v118, i64 %v124, i64 %v14
  %v126 = getelementptr float, ptr addrspace(1) %x, i64 %v125
  %v127 = load float, ptr addrspace(1) %v126, align 4
  %v128 = select i1 %v118, float %v127, float 0x0000000000000000
  %v129 = fadd float %v116, %v128
  %v130 = call float @llvm.nvvm.shfl.sync.up.f32(i32 -1, float %v129, i32 1, i32 0)
  %v131 = icmp sge i64 %v16, 1
  %v132 = fadd float %v129, %v130
  %v133 = select i1 %v131, float %v132, float %v129
  %v134 = call float @llvm.nvvm.shfl.sync.up.f32(i32 -1, float %v133, i32 2, i32 0)
  %v135 = icmp sge i64 %v16, 2
  %v136 = fadd float %v133, %v134
  %v137 = select i1 %v135, float %v136, float %v133
  %v138 = call float @llvm.nvvm.shfl.sync.up.f32(i32 -1, float %v137, i32 4, i32 0)
  %v139 = icmp sge i64 %v16, 4
  %v140 = fadd float %v137, %v138
  %v141 = select i1 %v139, float %v140, float %v137
  %v142 = call float @llvm.nvvm.shfl.sync.up.f32(i32 -1, float %v141, i32 8, i32 0)
  %v143 = icmp sge i64 %v16, 8
  %v144 = fadd float %v141, %v142
  %v145 = select i1 %v143, float %v144, float %v141
  %v146 = call float @llvm.nvvm.shfl.sync.up.f32(i32 -1, float %v145, i32 16, i32 0)
  %v147 = icmp sge i64 %v16, 16
  %v148 = fadd float %v145, %v146
  %v149 = select i1 %v147, float %v148, float %v145
  call void @llvm.nvvm.barrier.cta.sync.aligned.all(i32 0)
  %v150 = icmp eq i64 %v16, 31
  br i1 %v150, label %L151, label %L152
L151:
  %v153 = getelementptr float, ptr addrspace(3) @sums, i64 %v17
  store float %v149, ptr addrspace(3) %v153, align 4
  br label %L152
L152:
  call void @llvm.nvvm.barrier.cta.sync.aligned.all(i32 0)
  %v154 = load float, ptr %m18
  %v155 = load float, ptr %m18
  %v156 = getelementptr float, ptr addrspace(3) @sums, i64 0
  %v157 = load float, ptr addrspace(3) %v156, align 4
  %v158 = icmp sgt i64 %v17, 0
  %v159 = fadd float %v154, %v157
  %v160 = select i1 %v158, float %v159, float %v154
  %v161 = fadd float %v155, %v157
  %v162 = getelementptr float, ptr addrspace(3) @sums, i64 1
  %v163 = load float, ptr addrspace(3) %v162, align 4
  %v164 = icmp sgt i64 %v17, 1
  %v165 = fadd float %v160, %v163
  %v166 = select i1 %v164, float %v165, float %v160
  %v167 = fadd float %v161, %v163
  %v168 = getelementptr float, ptr addrspace(3) @sums, i64 2
  %v169 = load float, ptr addrspace(3) %v168, align 4
  %v170 = icmp sgt i64 %v17, 2
  %v171 = fadd float %v166, %v169
  %v172 = select i1 %v170, float %v171, float %v166
  %v173 = fadd float %v167, %v169
  %v174 = getelementptr float, ptr addrspace(3) @sums, i64 3
  %v175 = load float, ptr addrspace(3) %v174, align 4
  %v176 = icmp sgt i64 %v17, 3
  %v177 = fadd float %v172, %v175
  %v178 = select i1 %v176, float %v177, float %v172
  %v179 = fadd float %v173, %v175
  %v180 = getelementptr float, ptr addrspace(3) @sums, i64 4
  %v181 = load float, ptr addrspace(3) %v180, align 4
  %v182 = icmp sgt i64 %v17, 4
  %v183 = fadd float %v178, %v181
  %v184 = select i1 %v182, float %v183, float %v178
  %v185 = fadd float %v179, %v181
  %v186 = getelementptr float, ptr addrspace(3) @sums, i64 5
  %v187 = load float, ptr addrspace(3) %v186, align 4
  %v188 = icmp sgt i64 %v17, 5
  %v189 = fadd float %v184, %v187
  %v190 = select i1 %v188, float %v189, float %v184
  %v191 = fadd float %v185, %v187
  %v192 = getelementptr float, ptr addrspace(3) @sums, i64 6
  %v193 = load float, ptr addrspace(3) %v192, align 4
  %v194 = icmp sgt i64 %v17, 6
  %v195 = fadd float %v190, %v193
  %v196 = select i1 %v194, float %v195, float %v190
  %v197 = fadd float %v191, %v193
  %v198 = getelementptr float, ptr addrspace(3) @sums, i64 7
  %v199 = load float, ptr addrspace(3) %v198, align 4
  %v200 = icmp sgt i64 %v17, 7
  %v201 = fadd float %v196, %v199
  %v202 = select i1 %v200, float %v201, float %v196
  %v203 = fadd float %v197, %v199
  store float %v203, ptr %m18
  %v204 = icmp sgt i64 %v16, 0
  %v205 = call float @llvm.nvvm.shfl.sync.up.f32(i32 -1, float %v149, i32 1, i32 0)
  %v206 = select i1 %v204, float %v205, float 0x0000000000000000
  %v207 = fadd float %v202, %v206
  %v208 = add i64 %v26, 0
  %v209 = icmp slt i64 %v208, %length_
  br i1 %v209, label %L210, label %L211
L210:
  %v212 = fadd float %v207, %v38
  %v213 = add i64 %v26, 0
  %v214 = sub i64 %length_, 1
  %v215 = sub i64 %v214, %v213
  %v216 = select i1 %v15, i64 %v215, i64 %v213
  %v217 = mul i64 %v216, %inner_
  %v218 = add i64 %v14, %v217
  %v219 = getelementptr float, ptr addrspace(1) %out, i64 %v218
  store float %v212, ptr addrspace(1) %v219, align 4
  br label %L211
L211:
  %v220 = add i64 %v26, 1
  %v221 = icmp slt i64 %v220, %length_
  br i1 %v221, label %L222, label %L223
L222:
  %v224 = fadd float %v207, %v51
  %v225 = add i64 %v26, 1
  %v226 = sub i64 %length_, 1
  %v227 = sub i64 %v226, %v225
  %v228 = select i1 %v15, i64 %v227, i64 %v225
  %v229 = mul i64 %v228, %inner_
  %v230 = add i64 %v14, %v229
  %v231 = getelementptr float, ptr addrspace(1) %out, i64 %v230
  store float %v224, ptr addrspace(1) %v231, align 4
  br label %L223
L223:
  %v232 = add i64 %v26, 2
  %v233 = icmp slt i64 %v232, %length_
  br i1 %v233, label %L234, label %L235
L234:
  %v236 = fadd float %v207, %v64
  %v237 = add i64 %v26, 2
  %v238 = sub i64 %length_, 1
  %v239 = sub i64 %v238, %v237
  %v240 = select i1 %v15, i64 %v239, i64 %v237
  %v241 = mul i64 %v240, %inner_
  %v242 = add i64 %v14, %v241
  %v243 = getelementptr float, ptr addrspace(1) %out, i64 %v242
  store float %v236, ptr addrspace(1) %v243, align 4
  br label %L235
L235:
  %v244 = add i64 %v26, 3
  %v245 = icmp slt i64 %v244, %length_
  br i1 %v245, label %L246, label %L247
L246:
  %v248 = fadd float %v207, %v77
  %v249 = add i64 %v26, 3
  %v250 = sub i64 %length_, 1
  %v251 = sub i64 %v250, %v249
  %v252 = select i1 %v15, i64 %v251, i64 %v249
  %v253 = mul i64 %v252, %inner_
  %v254 = add i64 %v14, %v253
  %v255 = getelementptr float, ptr addrspace(1) %out, i64 %v254
  store float %v248, ptr addrspace(1) %v255, align 4
  br label %L247
L247:
  %v256 = add i64 %v26, 4
  %v257 = icmp slt i64 %v256, %length_
  br i1 %v257, label %L258, label %L259
L258:
  %v260 = fadd float %v207, %v90
  %v261 = add i64 %v26, 4
  %v262 = sub i64 %length_, 1
  %v263 = sub i64 %v262, %v261
  %v264 = select i1 %v15, i64 %v263, i64 %v261
  %v265 = mul i64 %v264, %inner_
  %v266 = add i64 %v14, %v265
  %v267 = getelementptr float, ptr addrspace(1) %out, i64 %v266
  store float %v260, ptr addrspace(1) %v267, align 4
  br label %L259
L259:
  %v268 = add i64 %v26, 5
  %v269 = icmp slt i64 %v268, %length_
  br i1 %v269, label %L270, label %L271
L270:
  %v272 = fadd float %v207, %v103
  %v273 = add i64 %v26, 5
  %v274 = sub i64 %length_, 1
  %v275 = sub i64 %v274, %v273
  %v276 = select i1 %v15, i64 %v275, i64 %v273
  %v277 = mul i64 %v276, %inner_
  %v278 = add i64 %v14, %v277
  %v279 = getelementptr float, ptr addrspace(1) %out, i64 %v278
  store float %v272, ptr addrspace(1) %v279, align 4
  br label %L271
L271:
  %v280 = add i64 %v26, 6
  %v281 = icmp slt i64 %v280, %length_
  br i1 %v281, label %L282, label %L283
L282:
  %v284 = fadd float %v207, %v116
  %v285 = add i64 %v26, 6
  %v286 = sub i64 %length_, 1
  %v287 = sub i64 %v286, %v285
  %v288 = select i1 %v15, i64 %v287, i64 %v285
  %v289 = mul i64 %v288, %inner_
  %v290 = add i64 %v14, %v289
  %v291 = getelementptr float, ptr addrspace(1) %out, i64 %v290
  store float %v284, ptr addrspace(1) %v291, align 4
  br label %L283
L283:
  %v292 = add i64 %v26, 7
  %v293 = icmp slt i64 %v292, %length_
  br i1 %v293, label %L294, label %L295
L294:
  %v296 = fadd float %v207, %v129
  %v297 = add i64 %v26, 7
  %v298 = sub i64 %length_, 1
  %v299 = sub i64 %v298, %v297
  %v300 = select i1 %v15, i64 %v299, i64 %v297
  %v301 = mul i64 %v300, %inner_
  %v302 = add i64 %v14, %v301
  %v303 = getelementptr float, ptr addrspace(1) %out, i64 %v302
  store float %v296, ptr addrspace(1) %v303, align 4
  br label %L295
L295:
  %v304 = add i64 %v23, 2048
  store i64 %v304, ptr %m22
  br label %L19
L21:
  ret void
}
