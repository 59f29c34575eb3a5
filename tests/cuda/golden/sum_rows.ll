@shared = internal addrspace(3) global [256 x float] undef, align 16

declare i32 @llvm.nvvm.read.ptx.sreg.tid.x()
declare i32 @llvm.nvvm.read.ptx.sreg.ctaid.x()
declare i32 @llvm.nvvm.read.ptx.sreg.ctaid.y()
declare i32 @llvm.nvvm.read.ptx.sreg.ctaid.z()
declare i32 @llvm.nvvm.read.ptx.sreg.ntid.x()
declare i32 @llvm.nvvm.read.ptx.sreg.nctaid.x()
declare void @llvm.nvvm.barrier.cta.sync.aligned.all(i32)

define ptx_kernel void @reduce_sum_float_1_1_rows(ptr addrspace(1) %a, ptr addrspace(1) %out, i64 %results, i64 %count, i64 %parts, i64 %od0, i64 %os0, i64 %id0, i64 %is0) "nvvm.maxntid"="256" {
entry:
  %m4 = alloca float, align 64
  %m17 = alloca float, align 64
  %m18 = alloca float, align 64
  %m19 = alloca float, align 64
  %m20 = alloca float, align 64
  %m21 = alloca float, align 64
  %m22 = alloca float, align 64
  %m23 = alloca float, align 64
  %m27 = alloca i64, align 64
  %t32 = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %t = zext i32 %t32 to i64
  %b32 = call i32 @llvm.nvvm.read.ptx.sreg.ctaid.x()
  %b = zext i32 %b32 to i64
  %p32 = call i32 @llvm.nvvm.read.ptx.sreg.ctaid.y()
  %p = zext i32 %p32 to i64
  %v1 = icmp slt i64 %b, %results
  %v2 = mul i64 %b, %os0
  %v3 = add i64 0, %v2
  store float 0x0000000000000000, ptr %m4
  %v5 = select i1 %v1, i64 %count, i64 0
  %v6 = mul i64 %parts, 256
  %v7 = mul i64 %p, 256
  %v8 = add i64 %t, %v7
  %v9 = icmp slt i64 %v8, %v5
  %v10 = sub i64 %v5, %v8
  %v11 = select i1 %v9, i64 %v10, i64 0
  %v12 = add i64 %v11, %v6
  %v13 = sub i64 %v12, 1
  %v14 = sdiv i64 %v13, %v6
  %v15 = srem i64 %v14, 8
  %v16 = sub i64 %v14, %v15
  store float 0x0000000000000000, ptr %m17
  store float 0x0000000000000000, ptr %m18
  store float 0x0000000000000000, ptr %m19
  store float 0x0000000000000000, ptr %m20
  store float 0x0000000000000000, ptr %m21
  store float 0x0000000000000000, ptr %m22
  store float 0x0000000000000000, ptr %m23
  store i64 0, ptr %m27
  br label %L24
L24:
  %v28 = load i64, ptr %m27
  %v29 = icmp slt i64 %v28, %v16
  br i1 %v29, label %L25, label %L26
L25:
  %v30 = add i64 %v28, 0
  %v31 = mul i64 %v30, %v6
  %v32 = add i64 %v8, %v31
  %v33 = mul i64 %v32, %is0
  %v34 = add i64 0, %v33
  %v35 = add i64 %v3, %v34
  %v36 = getelementptr float, ptr addrspace(1) %a, i64 %v35
  %v37 = load float, ptr addrspace(1) %v36, align 4
  %v38 = add i64 %v28, 1
  %v39 = mul i64 %v38, %v6
  %v40 = add i64 %v8, %v39
  %v41 = mul i64 %v40, %is0
  %v42 = add i64 0, %v41
  %v43 = add i64 %v3, %v42
  %v44 = getelementptr float, ptr addrspace(1) %a, i64 %v43
  %v45 = load float, ptr addrspace(1) %v44, align 4
  %v46 = add i64 %v28, 2
  %v47 = mul i64 %v46, %v6
  %v48 = add i64 %v8, %v47
  %v49 = mul i64 %v48, %is0
  %v50 = add i64 0, %v49
  %v51 = add i64 %v3, %v50
  %v52 = getelementptr float, ptr addrspace(1) %a, i64 %v51
  %v53 = load float, ptr addrspace(1) %v52, align 4
  %v54 = add i64 %v28, 3
  %v55 = mul i64 %v54, %v6
  %v56 = add i64 %v8, %v55
  %v57 = mul i64 %v56, %is0
  %v58 = add i64 0, %v57
  %v59 = add i64 %v3, %v58
  %v60 = getelementptr float, ptr addrspace(1) %a, i64 %v59
  %v61 = load float, ptr addrspace(1) %v60, align 4
  %v62 = add i64 %v28, 4
  %v63 = mul i64 %v62, %v6
  %v64 = add i64 %v8, %v63
  %v65 = mul i64 %v64, %is0
  %v66 = add i64 0, %v65
  %v67 = add i64 %v3, %v66
  %v68 = getelementptr float, ptr addrspace(1) %a, i64 %v67
  %v69 = load float, ptr addrspace(1) %v68, align 4
  %v70 = add i64 %v28, 5
  %v71 = mul i64 %v70, %v6
  %v72 = add i64 %v8, %v71
  %v73 = mul i64 %v72, %is0
  %v74 = add i64 0, %v73
  %v75 = add i64 %v3, %v74
  %v76 = getelementptr float, ptr addrspace(1) %a, i64 %v75
  %v77 = load float, ptr addrspace(1) %v76, align 4
  %v78 = add i64 %v28, 6
  %v79 = mul i64 %v78, %v6
  %v80 = add i64 %v8, %v79
  %v81 = mul i64 %v80, %is0
  %v82 = add i64 0, %v81
  %v83 = add i64 %v3, %v82
  %v84 = getelementptr float, ptr addrspace(1) %a, i64 %v83
  %v85 = load float, ptr addrspace(1) %v84, align 4
  %v86 = add i64 %v28, 7
  %v87 = mul i64 %v86, %v6
  %v88 = add i64 %v8, %v87
  %v89 = mul i64 %v88, %is0
  %v90 = add i64 0, %v89
  %v91 = add i64 %v3, %v90
  %v92 = getelementptr float, ptr addrspace(1) %a, i64 %v91
  %v93 = load float, ptr addrspace(1) %v92, align 4
  %v94 = load float, ptr %m4
  %v95 = fadd float %v94, %v37
  store float %v95, ptr %m4
  %v96 = load float, ptr %m17
  %v97 = fadd float %v96, %v45
  store float %v97, ptr %m17
  %v98 = load float, ptr %m18
  %v99 = fadd float %v98, %v53
  store float %v99, ptr %m18
  %v100 = load float, ptr %m19
  %v101 = fadd float %v100, %v61
  store float %v101, ptr %m19
  %v102 = load float, ptr %m20
  %v103 = fadd float %v102, %v69
  store float %v103, ptr %m20
  %v104 = load float, ptr %m21
  %v105 = fadd float %v104, %v77
  store float %v105, ptr %m21
  %v106 = load float, ptr %m22
  %v107 = fadd float %v106, %v85
  store float %v107, ptr %m22
  %v108 = load float, ptr %m23
  %v109 = fadd float %v108, %v93
  store float %v109, ptr %m23
  %v110 = add i64 %v28, 8
  store i64 %v110, ptr %m27
  br label %L24
L26:
  %v111 = icmp slt i64 %v16, %v14
  br i1 %v111, label %L112, label %L113
L112:
  %v114 = sub i64 %v14, 1
  %v115 = add i64 %v16, 0
  %v116 = icmp slt i64 %v115, %v14
  %v117 = add i64 %v16, 1
  %v118 = icmp slt i64 %v117, %v14
  %v119 = add i64 %v16, 2
  %v120 = icmp slt i64 %v119, %v14
  %v121 = add i64 %v16, 3
  %v122 = icmp slt i64 %v121, %v14
  %v123 = add i64 %v16, 4
  %v124 = icmp slt i64 %v123, %v14
  %v125 = add i64 %v16, 5
  %v126 = icmp slt i64 %v125, %v14
  %v127 = add i64 %v16, 6
  %v128 = icmp slt i64 %v127, %v14
  %v129 = add i64 %v16, 0
  %v130 = select i1 %v116, i64 %v129, i64 %v114
  %v131 = mul i64 %v130, %v6
  %v132 = add i64 %v8, %v131
  %v133 = mul i64 %v132, %is0
  %v134 = add i64 0, %v133
  %v135 = add i64 %v3, %v134
  %v136 = getelementptr float, ptr addrspace(1) %a, i64 %v135
  %v137 = load float, ptr addrspace(1) %v136, align 4
  %v138 = add i64 %v16, 1
  %v139 = select i1 %v118, i64 %v138, i64 %v114
  %v140 = mul i64 %v139, %v6
  %v141 = add i64 %v8, %v140
  %v142 = mul i64 %v141, %is0
  %v143 = add i64 0, %v142
  %v144 = add i64 %v3, %v143
  %v145 = getelementptr float, ptr addrspace(1) %a, i64 %v144
  %v146 = load float, ptr addrspace(1) %v145, align 4
  %v147 = add i64 %v16, 2
  %v148 = select i1 %v120, i64 %v147, i64 %v114
  %v149 = mul i64 %v148, %v6
  %v150 = add i64 %v8, %v149
  %v151 = mul i64 %v150, %is0
  %v152 = add i64 0, %v151
  %v153 = add i64 %v3, %v152
  %v154 = getelementptr float, ptr addrspace(1) %a, i64 %v153
  %v155 = load float, ptr addrspace(1) %v154, align 4
  %v156 = add i64 %v16, 3
  %v157 = select i1 %v122, i64 %v156, i64 %v114
  %v158 = mul i64 %v157, %v6
  %v159 = add i64 %v8, %v158
  %v160 = mul i64 %v159, %is0
  %v161 = add i64 0, %v160
  %v162 = add i64 %v3, %v161
  %v163 = getelementptr float, ptr addrspace(1) %a, i64 %v162
  %v164 = load float, ptr addrspace(1) %v163, align 4
  %v165 = add i64 %v16, 4
  %v166 = select i1 %v124, i64 %v165, i64 %v114
  %v167 = mul i64 %v166, %v6
  %v168 = add i64 %v8, %v167
  %v169 = mul i64 %v168, %is0
  %v170 = add i64 0, %v169
  %v171 = add i64 %v3, %v170
  %v172 = getelementptr float, ptr addrspace(1) %a, i64 %v171
  %v173 = load float, ptr addrspace(1) %v172, align 4
  %v174 = add i64 %v16, 5
  %v175 = select i1 %v126, i64 %v174, i64 %v114
  %v176 = mul i64 %v175, %v6
  %v177 = add i64 %v8, %v176
  %v178 = mul i64 %v177, %is0
  %v179 = add i64 0, %v178
  %v180 = add i64 %v3, %v179
  %v181 = getelementptr float, ptr addrspace(1) %a, i64 %v180
  %v182 = load float, ptr addrspace(1) %v181, align 4
  %v183 = add i64 %v16, 6
  %v184 = select i1 %v128, i64 %v183, i64 %v114
  %v185 = mul i64 %v184, %v6
  %v186 = add i64 %v8, %v185
  %v187 = mul i64 %v186, %is0
  %v188 = add i64 0, %v187
  %v189 = add i64 %v3, %v188
  %v190 = getelementptr float, ptr addrspace(1) %a, i64 %v189
  %v191 = load float, ptr addrspace(1) %v190, align 4
  %v192 = load float, ptr %m4
  %v193 = select i1 %v116, float %v137, float 0x0000000000000000
  %v194 = fadd float %v192, %v193
  store float %v194, ptr %m4
  %v195 = load float, ptr %m17
  %v196 = select i1 %v118, float %v146, float 0x0000000000000000
  %v197 = fadd float %v195, %v196
  store float %v197, ptr %m17
  %v198 = load float, ptr %m18
  %v199 = select i1 %v120, float %v155, float 0x0000000000000000
  %v200 = fadd float %v198, %v199
  store float %v200, ptr %m18
  %v201 = load float, ptr %m19
  %v202 = select i1 %v122, float %v164, float 0x0000000000000000
  %v203 = fadd float %v201, %v202
  store float %v203, ptr %m19
  %v204 = load float, ptr %m20
  %v205 = select i1 %v124, float %v173, float 0x0000000000000000
  %v206 = fadd float %v204, %v205
  store float %v206, ptr %m20
  %v207 = load float, ptr %m21
  %v208 = select i1 %v126, float %v182, float 0x0000000000000000
  %v209 = fadd float %v207, %v208
  store float %v209, ptr %m21
  %v210 = load float, ptr %m22
  %v211 = select i1 %v128, float %v191, float 0x0000000000000000
  %v212 = fadd float %v210, %v211
  store float %v212, ptr %m22
  br label %L113
L113:
  %v213 = load float, ptr %m4
  %v214 = load float, ptr %m17
  %v215 = fadd float %v213, %v214
  store float %v215, ptr %m4
  %v216 = load float, ptr %m4
  %v217 = load float, ptr %m18
  %v218 = fadd float %v216, %v217
  store float %v218, ptr %m4
  %v219 = load float, ptr %m4
  %v220 = load float, ptr %m19
  %v221 = fadd float %v219, %v220
  store float %v221, ptr %m4
  %v222 = load float, ptr %m4
  %v223 = load float, ptr %m20
  %v224 = fadd float %v222, %v223
  store float %v224, ptr %m4
  %v225 = load float, ptr %m4
  %v226 = load float, ptr %m21
  %v227 = fadd float %v225, %v226
  store float %v227, ptr %m4
  %v228 = load float, ptr %m4
  %v229 = load float, ptr %m22
  %v230 = fadd float %v228, %v229
  store float %v230, ptr %m4
  %v231 = load float, ptr %m4
  %v232 = load float, ptr %m23
  %v233 = fadd float %v231, %v232
  store float %v233, ptr %m4
  %v234 = getelementptr float, ptr addrspace(3) @shared, i64 %t
  %v235 = load float, ptr %m4
  store float %v235, ptr addrspace(3) %v234, align 4
  call void @llvm.nvvm.barrier.cta.sync.aligned.all(i32 0)
  %v236 = icmp slt i64 %t, 128
  br i1 %v236, label %L237, label %L238
L237:
  %v239 = add i64 %t, 128
  %v240 = getelementptr float, ptr addrspace(3) @shared, i64 %v239
  %v241 = load float, ptr addrspace(3) %v234, align 4
  %v242 = load float, ptr addrspace(3) %v240, align 4
  %v243 = fadd float %v241, %v242
  store float %v243, ptr addrspace(3) %v234, align 4
  br label %L238
L238:
  call void @llvm.nvvm.barrier.cta.sync.aligned.all(i32 0)
  %v244 = icmp slt i64 %t, 64
  br i1 %v244, label %L245, label %L246
L245:
  %v247 = add i64 %t, 64
  %v248 = getelementptr float, ptr addrspace(3) @shared, i64 %v247
  %v249 = load float, ptr addrspace(3) %v234, align 4
  %v250 = load float, ptr addrspace(3) %v248, align 4
  %v251 = fadd float %v249, %v250
  store float %v251, ptr addrspace(3) %v234, align 4
  br label %L246
L246:
  call void @llvm.nvvm.barrier.cta.sync.aligned.all(i32 0)
  %v252 = icmp slt i64 %t, 32
  br i1 %v252, label %L253, label %L254
L253:
  %v255 = add i64 %t, 32
  %v256 = getelementptr float, ptr addrspace(3) @shared, i64 %v255
  %v257 = load float, ptr addrspace(3) %v234, align 4
  %v258 = load float, ptr addrspace(3) %v256, align 4
  %v259 = fadd float %v257, %v258
  store float %v259, ptr addrspace(3) %v234, align 4
  br label %L254
L254:
  call void @llvm.nvvm.barrier.cta.sync.aligned.all(i32 0)
  %v260 = icmp slt i64 %t, 16
  br i1 %v260, label %L261, label %L262
L261:
  %v263 = add i64 %t, 16
  %v264 = getelementptr float, ptr addrspace(3) @shared, i64 %v263
  %v265 = load float, ptr addrspace(3) %v234, align 4
  %v266 = load float, ptr addrspace(3) %v264, align 4
  %v267 = fadd float %v265, %v266
  store float %v267, ptr addrspace(3) %v234, align 4
  br label %L262
L262:
  call void @llvm.nvvm.barrier.cta.sync.aligned.all(i32 0)
  %v268 = icmp slt i64 %t, 8
  br i1 %v268, label %L269, label %L270
L269:
  %v271 = add i64 %t, 8
  %v272 = getelementptr float, ptr addrspace(3) @shared, i64 %v271
  %v273 = load float, ptr addrspace(3) %v234, align 4
  %v274 = load float, ptr addrspace(3) %v272, align 4
  %v275 = fadd float %v273, %v274
  store float %v275, ptr addrspace(3) %v234, align 4
  br label %L270
L270:
  call void @llvm.nvvm.barrier.cta.sync.aligned.all(i32 0)
  %v276 = icmp slt i64 %t, 4
  br i1 %v276, label %L277, label %L278
L277:
  %v279 = add i64 %t, 4
  %v280 = getelementptr float, ptr addrspace(3) @shared, i64 %v279
  %v281 = load float, ptr addrspace(3) %v234, align 4
  %v282 = load float, ptr addrspace(3) %v280, align 4
  %v283 = fadd float %v281, %v282
  store float %v283, ptr addrspace(3) %v234, align 4
  br label %L278
L278:
  call void @llvm.nvvm.barrier.cta.sync.aligned.all(i32 0)
  %v284 = icmp slt i64 %t, 2
  br i1 %v284, label %L285, label %L286
L285:
  %v287 = add i64 %t, 2
  %v288 = getelementptr float, ptr addrspace(3) @shared, i64 %v287
  %v289 = load float, ptr addrspace(3) %v234, align 4
  %v290 = load float, ptr addrspace(3) %v288, align 4
  %v291 = fadd float %v289, %v290
  store float %v291, ptr addrspace(3) %v234, align 4
  br label %L286
L286:
  call void @llvm.nvvm.barrier.cta.sync.aligned.all(i32 0)
  %v292 = icmp slt i64 %t, 1
  br i1 %v292, label %L293, label %L294
L293:
  %v295 = add i64 %t, 1
  %v296 = getelementptr float, ptr addrspace(3) @shared, i64 %v295
  %v297 = load float, ptr addrspace(3) %v234, align 4
  %v298 = load float, ptr addrspace(3) %v296, align 4
  %v299 = fadd float %v297, %v298
  store float %v299, ptr addrspace(3) %v234, align 4
  br label %L294
L294:
  %v300 = icmp slt i64 %t, 1
  %v301 = and i1 %v300, %v1
  br i1 %v301, label %L302, label %L303
L302:
  %v304 = load float, ptr addrspace(3) %v234, align 4
  %v305 = mul i64 %p, %results
  %v306 = add i64 %v305, %b
  %v307 = getelementptr float, ptr addrspace(1) %out, i64 %v306
  store float %v304, ptr addrspace(1) %v307, align 4
  br label %L303
L303:
  ret void
}
