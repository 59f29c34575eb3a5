@sums = internal addrspace(3) global [9 x i64] undef, align 16

declare i32 @llvm.nvvm.read.ptx.sreg.tid.x()
declare i32 @llvm.nvvm.read.ptx.sreg.ctaid.x()
declare i32 @llvm.nvvm.read.ptx.sreg.ctaid.y()
declare i32 @llvm.nvvm.read.ptx.sreg.ctaid.z()
declare i32 @llvm.nvvm.read.ptx.sreg.ntid.x()
declare i32 @llvm.nvvm.read.ptx.sreg.nctaid.x()
declare void @llvm.nvvm.barrier.cta.sync.aligned.all(i32)

declare i32 @llvm.nvvm.shfl.sync.up.i32(i32, i32, i32, i32)
define ptx_kernel void @running_max_i64(ptr addrspace(1) %x, ptr addrspace(1) %out, i64 %length_, i64 %inner_, i64 %backwards_) "nvvm.maxntid"="256" {
entry:
  %m18 = alloca i64, align 64
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
  store i64 -9223372036854775808, ptr %m18
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
  %v36 = getelementptr i64, ptr addrspace(1) %x, i64 %v35
  %v37 = load i64, ptr addrspace(1) %v36, align 8
  %v38 = select i1 %v28, i64 %v37, i64 -9223372036854775808
  %v39 = add i64 %v26, 1
  %v40 = icmp slt i64 %v39, %length_
  %v41 = add i64 %v26, 1
  %v42 = sub i64 %length_, 1
  %v43 = sub i64 %v42, %v41
  %v44 = select i1 %v15, i64 %v43, i64 %v41
  %v45 = mul i64 %v44, %inner_
  %v46 = add i64 %v14, %v45
  %v47 = select i1 %v40, i64 %v46, i64 %v14
  %v48 = getelementptr i64, ptr addrspace(1) %x, i64 %v47
  %v49 = load i64, ptr addrspace(1) %v48, align 8
  %v50 = select i1 %v40, i64 %v49, i64 -9223372036854775808
  %v51 = icmp sgt i64 %v38, %v50
  %v52 = select i1 %v51, i64 %v38, i64 %v50
  %v53 = add i64 %v26, 2
  %v54 = icmp slt i64 %v53, %length_
  %v55 = add i64 %v26, 2
  %v56 = sub i64 %length_, 1
  %v57 = sub i64 %v56, %v55
  %v58 = select i1 %v15, i64 %v57, i64 %v55
  %v59 = mul i64 %v58, %inner_
  %v60 = add i64 %v14, %v59
  %v61 = select i1 %v54, i64 %v60, i64 %v14
  %v62 = getelementptr i64, ptr addrspace(1) %x, i64 %v61
  %v63 = load i64, ptr addrspace(1) %v62, align 8
  %v64 = select i1 %v54, i64 %v63, i64 -9223372036854775808
  %v65 = icmp sgt i64 %v52, %v64
  %v66 = select i1 %v65, i64 %v52, i64 %v64
  %v67 = add i64 %v26, 3
  %v68 = icmp slt i64 %v67, %length_
  %v69 = add i64 %v26, 3
  %v70 = sub i64 %length_, 1
  %v71 = sub i64 %v70, %v69
  %v72 = select i1 %v15, i64 %v71, i64 %v69
  %v73 = mul i64 %v72, %inner_
  %v74 = add i64 %v14, %v73
  %v75 = select i1 %v68, i64 %v74, i64 %v14
  %v76 = getelementptr i64, ptr addrspace(1) %x, i64 %v75
  %v77 = load i64, ptr addrspace(1) %v76, align 8
  %v78 = select i1 %v68, i64 %v77, i64 -9223372036854775808
  %v79 = icmp sgt i64 %v66, %v78
  %v80 = select i1 %v79, i64 %v66, i64 %v78
  %v81 = add i64 %v26, 4
  %v82 = icmp slt i64 %v81, %length_
  %v83 = add i64 %v26, 4
  %v84 = sub i64 %length_, 1
  %v85 = sub i64 %v84, %v83
  %v86 = select i1 %v15, i64 %v85, i64 %v83
  %v87 = mul i64 %v86, %inner_
  %v88 = add i64 %v14, %v87
  %v89 = select i1 %v82, i64 %v88, i64 %v14
  %v90 = getelementptr i64, ptr addrspace(1) %x, i64 %v89
  %v91 = load i64, ptr addrspace(1) %v90, align 8
  %v92 = select i1 %v82, i64 %v91, i64 -9223372036854775808
  %v93 = icmp sgt i64 %v80, %v92
  %v94 = select i1 %v93, i64 %v80, i64 %v92
  %v95 = add i64 %v26, 5
  %v96 = icmp slt i64 %v95, %length_
  %v97 = add i64 %v26, 5
  %v98 = sub i64 %length_, 1
  %v99 = sub i64 %v98, %v97
  %v100 = select i1 %v15, i64 %v99, i64 %v97
  %v101 = mul i64 %v100, %inner_
  %v102 = add i64 %v14, %v101
  %v103 = select i1 %v96, i64 %v102, i64 %v14
  %v104 = getelementptr i64, ptr addrspace(1) %x, i64 %v103
  %v105 = load i64, ptr addrspace(1) %v104, align 8
  %v106 = select i1 %v96, i64 %v105, i64 -9223372036854775808
  %v107 = icmp sgt i64 %v94, %v106
  %v108 = select i1 %v107, i64 %v94, i64 %v106
  %v109 = add i64 %v26, 6
  %v110 = icmp slt i64 %v109, %length_
  %v111 = add i64 %v26, 6
  %v112 = sub i64 %length_, 1
  %v113 = sub i64 %v112, %v111
  %v114 = select i1 %v15, i64 %v113, i64 %v111
  %v115 = mul i64 %v114, %inner_
  %v116 = add i64 %v14, %v115
  %v117 = select i1 %v110, i64 %v116, i64 %v14
  %v118 = getelementptr i64, ptr addrspace(1) %x, i64 %v117
  %v119 = load i64, ptr addrspace(1) %v118, align 8
  %v120 = select i1 %v110, i64 %v119, i64 -9223372036854775808
  %v121 = icmp sgt i64 %v108, %v120
  %v122 = select i1 %v121, i64 %v108, i64 %v120
  %v123 = add i64 %v26, 7
  %v124 = icmp slt i64 %v123, %length_
  %v125 = add i64 %v26, 7
  %v126 = sub i64 %length_, 1
  %v127 = sub i64 %v126, %v125
  %v128 = select i1 %v15, i64 %v127, i64 %v125
  %v129 = mul i64 %v128, %inner_
  %v130 = add i64 %v14, %v129
  %v131 = select i1 %v124, i64 %v130, i64 %v14
  %v132 = getelementptr i64, ptr addrspace(1) %x, i64 %v131
  %v133 = load i64, ptr addrspace(1) %v132, align 8
  %v134 = select i1 %v124, i64 %v133, i64 -9223372036854775808
  %v135 = icmp sgt i64 %v122, %v134
  %v136 = select i1 %v135, i64 %v122, i64 %v134
  %v137 = bitcast i64 %v136 to double
  %v138 = bitcast double %v137 to <2 x i32>
  %v139 = insertelement <2 x i32> poison, i32 0, i64 0
  %v140 = extractelement <2 x i32> %v138, i64 0
  %v141 = call i32 @llvm.nvvm.shfl.sync.up.i32(i32 -1, i32 %v140, i32 1, i32 0)
  %v142 = insertelement <2 x i32> %v139, i32 %v141, i64 0
  %v143 = extractelement <2 x i32> %v138, i64 1
  %v144 = call i32 @llvm.nvvm.shfl.sync.up.i32(i32 -1, i32 %v143, i32 1, i32 0)
  %v145 = insertelement <2 x i32> %v142, i32 %v144, i64 1
  %v146 = bitcast <2 x i32> %v145 to double
  %v147 = bitcast double %v146 to i64
  %v148 = icmp sge i64 %v16, 1
  %v149 = icmp sgt i64 %v136, %v147
  %v150 = select i1 %v149, i64 %v136, i64 %v147
  %v151 = select i1 %v148, i64 %v150, i64 %v136
  %v152 = bitcast i64 %v151 to double
  %v153 = bitcast double %v152 to <2 x i32>
  %v154 = insertelement <2 x i32> poison, i32 0, i64 0
  %v155 = extractelement <2 x i32> %v153, i64 0
  %v156 = call i32 @llvm.nvvm.shfl.sync.up.i32(i32 -1, i32 %v155, i32 2, i32 0)
  %v157 = insertelement <2 x i32> %v154, i32 %v156, i64 0
  %v158 = extractelement <2 x i32> %v153, i64 1
  %v159 = call i32 @llvm.nvvm.shfl.sync.up.i32(i32 -1, i32 %v158, i32 2, i32 0)
  %v160 = insertelement <2 x i32> %v157, i32 %v159, i64 1
  %v161 = bitcast <2 x i32> %v160 to double
  %v162 = bitcast double %v161 to i64
  %v163 = icmp sge i64 %v16, 2
  %v164 = icmp sgt i64 %v151, %v162
  %v165 = select i1 %v164, i64 %v151, i64 %v162
  %v166 = select i1 %v163, i64 %v165, i64 %v151
  %v167 = bitcast i64 %v166 to double
  %v168 = bitcast double %v167 to <2 x i32>
  %v169 = insertelement <2 x i32> poison, i32 0, i64 0
  %v170 = extractelement <2 x i32> %v168, i64 0
  %v171 = call i32 @llvm.nvvm.shfl.sync.up.i32(i32 -1, i32 %v170, i32 4, i32 0)
  %v172 = insertelement <2 x i32> %v169, i32 %v171, i64 0
  %v173 = extractelement <2 x i32> %v168, i64 1
  %v174 = call i32 @llvm.nvvm.shfl.sync.up.i32(i32 -1, i32 %v173, i32 4, i32 0)
  %v175 = insertelement <2 x i32> %v172, i32 %v174, i64 1
  %v176 = bitcast <2 x i32> %v175 to double
  %v177 = bitcast double %v176 to i64
  %v178 = icmp sge i64 %v16, 4
  %v179 = icmp sgt i64 %v166, %v177
  %v180 = select i1 %v179, i64 %v166, i64 %v177
  %v181 = select i1 %v178, i64 %v180, i64 %v166
  %v182 = bitcast i64 %v181 to double
  %v183 = bitcast double %v182 to <2 x i32>
  %v184 = insertelement <2 x i32> poison, i32 0, i64 0
  %v185 = extractelement <2 x i32> %v183, i64 0
  %v186 = call i32 @llvm.nvvm.shfl.sync.up.i32(i32 -1, i32 %v185, i32 8, i32 0)
  %v187 = insertelement <2 x i32> %v184, i32 %v186, i64 0
  %v188 = extractelement <2 x i32> %v183, i64 1
  %v189 = call i32 @llvm.nvvm.shfl.sync.up.i32(i32 -1, i32 %v188, i32 8, i32 0)
  %v190 = insertelement <2 x i32> %v187, i32 %v189, i64 1
  %v191 = bitcast <2 x i32> %v190 to double
  %v192 = bitcast double %v191 to i64
  %v193 = icmp sge i64 %v16, 8
  %v194 = icmp sgt i64 %v181, %v192
  %v195 = select i1 %v194, i64 %v181, i64 %v192
  %v196 = select i1 %v193, i64 %v195, i64 %v181
  %v197 = bitcast i64 %v196 to double
  %v198 = bitcast double %v197 to <2 x i32>
  %v199 = insertelement <2 x i32> poison, i32 0, i64 0
  %v200 = extractelement <2 x i32> %v198, i64 0
  %v201 = call i32 @llvm.nvvm.shfl.sync.up.i32(i32 -1, i32 %v200, i32 16, i32 0)
  %v202 = insertelement <2 x i32> %v199, i32 %v201, i64 0
  %v203 = extractelement <2 x i32> %v198, i64 1
  %v204 = call i32 @llvm.nvvm.shfl.sync.up.i32(i32 -1, i32 %v203, i32 16, i32 0)
  %v205 = insertelement <2 x i32> %v202, i32 %v204, i64 1
  %v206 = bitcast <2 x i32> %v205 to double
  %v207 = bitcast double %v206 to i64
  %v208 = icmp sge i64 %v16, 16
  %v209 = icmp sgt i64 %v196, %v207
  %v210 = select i1 %v209, i64 %v196, i64 %v207
  %v211 = select i1 %v208, i64 %v210, i64 %v196
  call void @llvm.nvvm.barrier.cta.sync.aligned.all(i32 0)
  %v212 = icmp eq i64 %v16, 31
  br i1 %v212, label %L213, label %L214
L213:
  %v215 = getelementptr i64, ptr addrspace(3) @sums, i64 %v17
  store i64 %v211, ptr addrspace(3) %v215, align 8
  br label %L214
L214:
  call void @llvm.nvvm.barrier.cta.sync.aligned.all(i32 0)
  %v216 = load i64, ptr %m18
  %v217 = load i64, ptr %m18
  %v218 = getelementptr i64, ptr addrspace(3) @sums, i64 0
  %v219 = load i64, ptr addrspace(3) %v218, align 8
  %v220 = icmp sgt i64 %v17, 0
  %v221 = icmp sgt i64 %v216, %v219
  %v222 = select i1 %v221, i64 %v216, i64 %v219
  %v223 = select i1 %v220, i64 %v222, i64 %v216
  %v224 = icmp sgt i64 %v217, %v219
  %v225 = select i1 %v224, i64 %v217, i64 %v219
  %v226 = getelementptr i64, ptr addrspace(3) @sums, i64 1
  %v227 = load i64, ptr addrspace(3) %v226, align 8
  %v228 = icmp sgt i64 %v17, 1
  %v229 = icmp sgt i64 %v223, %v227
  %v230 = select i1 %v229, i64 %v223, i64 %v227
  %v231 = select i1 %v228, i64 %v230, i64 %v223
  %v232 = icmp sgt i64 %v225, %v227
  %v233 = select i1 %v232, i64 %v225, i64 %v227
  %v234 = getelementptr i64, ptr addrspace(3) @sums, i64 2
  %v235 = load i64, ptr addrspace(3) %v234, align 8
  %v236 = icmp sgt i64 %v17, 2
  %v237 = icmp sgt i64 %v231, %v235
  %v238 = select i1 %v237, i64 %v231, i64 %v235
  %v239 = select i1 %v236, i64 %v238, i64 %v231
  %v240 = icmp sgt i64 %v233, %v235
  %v241 = select i1 %v240, i64 %v233, i64 %v235
  %v242 = getelementptr i64, ptr addrspace(3) @sums, i64 3
  %v243 = load i64, ptr addrspace(3) %v242, align 8
  %v244 = icmp sgt i64 %v17, 3
  %v245 = icmp sgt i64 %v239, %v243
  %v246 = select i1 %v245, i64 %v239, i64 %v243
  %v247 = select i1 %v244, i64 %v246, i64 %v239
  %v248 = icmp sgt i64 %v241, %v243
  %v249 = select i1 %v248, i64 %v241, i64 %v243
  %v250 = getelementptr i64, ptr addrspace(3) @sums, i64 4
  %v251 = load i64, ptr addrspace(3) %v250, align 8
  %v252 = icmp sgt i64 %v17, 4
  %v253 = icmp sgt i64 %v247, %v251
  %v254 = select i1 %v253, i64 %v247, i64 %v251
  %v255 = select i1 %v252, i64 %v254, i64 %v247
  %v256 = icmp sgt i64 %v249, %v251
  %v257 = select i1 %v256, i64 %v249, i64 %v251
  %v258 = getelementptr i64, ptr addrspace(3) @sums, i64 5
  %v259 = load i64, ptr addrspace(3) %v258, align 8
  %v260 = icmp sgt i64 %v17, 5
  %v261 = icmp sgt i64 %v255, %v259
  %v262 = select i1 %v261, i64 %v255, i64 %v259
  %v263 = select i1 %v260, i64 %v262, i64 %v255
  %v264 = icmp sgt i64 %v257, %v259
  %v265 = select i1 %v264, i64 %v257, i64 %v259
  %v266 = getelementptr i64, ptr addrspace(3) @sums, i64 6
  %v267 = load i64, ptr addrspace(3) %v266, align 8
  %v268 = icmp sgt i64 %v17, 6
  %v269 = icmp sgt i64 %v263, %v267
  %v270 = select i1 %v269, i64 %v263, i64 %v267
  %v271 = select i1 %v268, i64 %v270, i64 %v263
  %v272 = icmp sgt i64 %v265, %v267
  %v273 = select i1 %v272, i64 %v265, i64 %v267
  %v274 = getelementptr i64, ptr addrspace(3) @sums, i64 7
  %v275 = load i64, ptr addrspace(3) %v274, align 8
  %v276 = icmp sgt i64 %v17, 7
  %v277 = icmp sgt i64 %v271, %v275
  %v278 = select i1 %v277, i64 %v271, i64 %v275
  %v279 = select i1 %v276, i64 %v278, i64 %v271
  %v280 = icmp sgt i64 %v273, %v275
  %v281 = select i1 %v280, i64 %v273, i64 %v275
  store i64 %v281, ptr %m18
  %v282 = icmp sgt i64 %v16, 0
  %v283 = bitcast i64 %v211 to double
  %v284 = bitcast double %v283 to <2 x i32>
  %v285 = insertelement <2 x i32> poison, i32 0, i64 0
  %v286 = extractelement <2 x i32> %v284, i64 0
  %v287 = call i32 @llvm.nvvm.shfl.sync.up.i32(i32 -1, i32 %v286, i32 1, i32 0)
  %v288 = insertelement <2 x i32> %v285, i32 %v287, i64 0
  %v289 = extractelement <2 x i32> %v284, i64 1
  %v290 = call i32 @llvm.nvvm.shfl.sync.up.i32(i32 -1, i32 %v289, i32 1, i32 0)
  %v291 = insertelement <2 x i32> %v288, i32 %v290, i64 1
  %v292 = bitcast <2 x i32> %v291 to double
  %v293 = bitcast double %v292 to i64
  %v294 = select i1 %v282, i64 %v293, i64 -9223372036854775808
  %v295 = icmp sgt i64 %v279, %v294
  %v296 = select i1 %v295, i64 %v279, i64 %v294
  %v297 = add i64 %v26, 0
  %v298 = icmp slt i64 %v297, %length_
  br i1 %v298, label %L299, label %L300
L299:
  %v301 = icmp sgt i64 %v296, %v38
  %v302 = select i1 %v301, i64 %v296, i64 %v38
  %v303 = add i64 %v26, 0
  %v304 = sub i64 %length_, 1
  %v305 = sub i64 %v304, %v303
  %v306 = select i1 %v15, i64 %v305, i64 %v303
  %v307 = mul i64 %v306, %inner_
  %v308 = add i64 %v14, %v307
  %v309 = getelementptr i64, ptr addrspace(1) %out, i64 %v308
  store i64 %v302, ptr addrspace(1) %v309, align 8
  br label %L300
L300:
  %v310 = add i64 %v26, 1
  %v311 = icmp slt i64 %v310, %length_
  br i1 %v311, label %L312, label %L313
L312:
  %v314 = icmp sgt i64 %v296, %v52
  %v315 = select i1 %v314, i64 %v296, i64 %v52
  %v316 = add i64 %v26, 1
  %v317 = sub i64 %length_, 1
  %v318 = sub i64 %v317, %v316
  %v319 = select i1 %v15, i64 %v318, i64 %v316
  %v320 = mul i64 %v319, %inner_
  %v321 = add i64 %v14, %v320
  %v322 = getelementptr i64, ptr addrspace(1) %out, i64 %v321
  store i64 %v315, ptr addrspace(1) %v322, align 8
  br label %L313
L313:
  %v323 = add i64 %v26, 2
  %v324 = icmp slt i64 %v323, %length_
  br i1 %v324, label %L325, label %L326
L325:
  %v327 = icmp sgt i64 %v296, %v66
  %v328 = select i1 %v327, i64 %v296, i64 %v66
  %v329 = add i64 %v26, 2
  %v330 = sub i64 %length_, 1
  %v331 = sub i64 %v330, %v329
  %v332 = select i1 %v15, i64 %v331, i64 %v329
  %v333 = mul i64 %v332, %inner_
  %v334 = add i64 %v14, %v333
  %v335 = getelementptr i64, ptr addrspace(1) %out, i64 %v334
  store i64 %v328, ptr addrspace(1) %v335, align 8
  br label %L326
L326:
  %v336 = add i64 %v26, 3
  %v337 = icmp slt i64 %v336, %length_
  br i1 %v337, label %L338, label %L339
L338:
  %v340 = icmp sgt i64 %v296, %v80
  %v341 = select i1 %v340, i64 %v296, i64 %v80
  %v342 = add i64 %v26, 3
  %v343 = sub i64 %length_, 1
  %v344 = sub i64 %v343, %v342
  %v345 = select i1 %v15, i64 %v344, i64 %v342
  %v346 = mul i64 %v345, %inner_
  %v347 = add i64 %v14, %v346
  %v348 = getelementptr i64, ptr addrspace(1) %out, i64 %v347
  store i64 %v341, ptr addrspace(1) %v348, align 8
  br label %L339
L339:
  %v349 = add i64 %v26, 4
  %v350 = icmp slt i64 %v349, %length_
  br i1 %v350, label %L351, label %L352
L351:
  %v353 = icmp sgt i64 %v296, %v94
  %v354 = select i1 %v353, i64 %v296, i64 %v94
  %v355 = add i64 %v26, 4
  %v356 = sub i64 %length_, 1
  %v357 = sub i64 %v356, %v355
  %v358 = select i1 %v15, i64 %v357, i64 %v355
  %v359 = mul i64 %v358, %inner_
  %v360 = add i64 %v14, %v359
  %v361 = getelementptr i64, ptr addrspace(1) %out, i64 %v360
  store i64 %v354, ptr addrspace(1) %v361, align 8
  br label %L352
L352:
  %v362 = add i64 %v26, 5
  %v363 = icmp slt i64 %v362, %length_
  br i1 %v363, label %L364, label %L365
L364:
  %v366 = icmp sgt i64 %v296, %v108
  %v367 = select i1 %v366, i64 %v296, i64 %v108
  %v368 = add i64 %v26, 5
  %v369 = sub i64 %length_, 1
  %v370 = sub i64 %v369, %v368
  %v371 = select i1 %v15, i64 %v370, i64 %v368
  %v372 = mul i64 %v371, %inner_
  %v373 = add i64 %v14, %v372
  %v374 = getelementptr i64, ptr addrspace(1) %out, i64 %v373
  store i64 %v367, ptr addrspace(1) %v374, align 8
  br label %L365
L365:
  %v375 = add i64 %v26, 6
  %v376 = icmp slt i64 %v375, %length_
  br i1 %v376, label %L377, label %L378
L377:
  %v379 = icmp sgt i64 %v296, %v122
  %v380 = select i1 %v379, i64 %v296, i64 %v122
  %v381 = add i64 %v26, 6
  %v382 = sub i64 %length_, 1
  %v383 = sub i64 %v382, %v381
  %v384 = select i1 %v15, i64 %v383, i64 %v381
  %v385 = mul i64 %v384, %inner_
  %v386 = add i64 %v14, %v385
  %v387 = getelementptr i64, ptr addrspace(1) %out, i64 %v386
  store i64 %v380, ptr addrspace(1) %v387, align 8
  br label %L378
L378:
  %v388 = add i64 %v26, 7
  %v389 = icmp slt i64 %v388, %length_
  br i1 %v389, label %L390, label %L391
L390:
  %v392 = icmp sgt i64 %v296, %v136
  %v393 = select i1 %v392, i64 %v296, i64 %v136
  %v394 = add i64 %v26, 7
  %v395 = sub i64 %length_, 1
  %v396 = sub i64 %v395, %v394
  %v397 = select i1 %v15, i64 %v396, i64 %v394
  %v398 = mul i64 %v397, %inner_
  %v399 = add i64 %v14, %v398
  %v400 = getelementptr i64, ptr addrspace(1) %out, i64 %v399
  store i64 %v393, ptr addrspace(1) %v400, align 8
  br label %L391
L391:
  %v401 = add i64 %v23, 2048
  store i64 %v401, ptr %m22
  br label %L19
L21:
  ret void
}
