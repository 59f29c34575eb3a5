@shared = internal addrspace(3) global [256 x double] undef, align 16

declare i32 @llvm.nvvm.read.ptx.sreg.tid.x()
declare i32 @llvm.nvvm.read.ptx.sreg.ctaid.x()
declare i32 @llvm.nvvm.read.ptx.sreg.ctaid.y()
declare i32 @llvm.nvvm.read.ptx.sreg.ctaid.z()
declare i32 @llvm.nvvm.read.ptx.sreg.ntid.x()
declare i32 @llvm.nvvm.read.ptx.sreg.nctaid.x()
declare void @llvm.nvvm.barrier.cta.sync.aligned.all(i32)

define ptx_kernel void @reduce_max_double_1_2_columns(ptr addrspace(1) %a, ptr addrspace(1) %out, i64 %results, i64 %count, i64 %parts, i64 %od0, i64 %os0, i64 %id0, i64 %id1, i64 %is0, i64 %is1) "nvvm.maxntid"="256" {
entry:
  %m8 = alloca double, align 64
  %m21 = alloca double, align 64
  %m22 = alloca double, align 64
  %m23 = alloca double, align 64
  %m24 = alloca double, align 64
  %m25 = alloca double, align 64
  %m26 = alloca double, align 64
  %m27 = alloca double, align 64
  %m31 = alloca i64, align 64
  %t32 = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %t = zext i32 %t32 to i64
  %b32 = call i32 @llvm.nvvm.read.ptx.sreg.ctaid.x()
  %b = zext i32 %b32 to i64
  %p32 = call i32 @llvm.nvvm.read.ptx.sreg.ctaid.y()
  %p = zext i32 %p32 to i64
  %v1 = srem i64 %t, 32
  %v2 = sdiv i64 %t, 32
  %v3 = mul i64 %b, 32
  %v4 = add i64 %v3, %v1
  %v5 = icmp slt i64 %v4, %results
  %v6 = mul i64 %v4, %os0
  %v7 = add i64 0, %v6
  store double 0xFFF0000000000000, ptr %m8
  %v9 = select i1 %v5, i64 %count, i64 0
  %v10 = mul i64 %parts, 8
  %v11 = mul i64 %p, 8
  %v12 = add i64 %v2, %v11
  %v13 = icmp slt i64 %v12, %v9
  %v14 = sub i64 %v9, %v12
  %v15 = select i1 %v13, i64 %v14, i64 0
  %v16 = add i64 %v15, %v10
  %v17 = sub i64 %v16, 1
  %v18 = sdiv i64 %v17, %v10
  %v19 = srem i64 %v18, 8
  %v20 = sub i64 %v18, %v19
  store double 0xFFF0000000000000, ptr %m21
  store double 0xFFF0000000000000, ptr %m22
  store double 0xFFF0000000000000, ptr %m23
  store double 0xFFF0000000000000, ptr %m24
  store double 0xFFF0000000000000, ptr %m25
  store double 0xFFF0000000000000, ptr %m26
  store double 0xFFF0000000000000, ptr %m27
  store i64 0, ptr %m31
  br label %L28
L28:
  %v32 = load i64, ptr %m31
  %v33 = icmp slt i64 %v32, %v20
  br i1 %v33, label %L29, label %L30
L29:
  %v34 = add i64 %v32, 0
  %v35 = mul i64 %v34, %v10
  %v36 = add i64 %v12, %v35
  %v37 = sdiv i64 %v36, %id1
  %v38 = mul i64 %v37, %id1
  %v39 = sub i64 %v36, %v38
  %v40 = mul i64 %v39, %is1
  %v41 = add i64 0, %v40
  %v42 = mul i64 %v37, %is0
  %v43 = add i64 %v41, %v42
  %v44 = add i64 %v7, %v43
  %v45 = getelementptr double, ptr addrspace(1) %a, i64 %v44
  %v46 = load double, ptr addrspace(1) %v45, align 8
  %v47 = add i64 %v32, 1
  %v48 = mul i64 %v47, %v10
  %v49 = add i64 %v12, %v48
  %v50 = sdiv i64 %v49, %id1
  %v51 = mul i64 %v50, %id1
  %v52 = sub i64 %v49, %v51
  %v53 = mul i64 %v52, %is1
  %v54 = add i64 0, %v53
  %v55 = mul i64 %v50, %is0
  %v56 = add i64 %v54, %v55
  %v57 = add i64 %v7, %v56
  %v58 = getelementptr double, ptr addrspace(1) %a, i64 %v57
  %v59 = load double, ptr addrspace(1) %v58, align 8
  %v60 = add i64 %v32, 2
  %v61 = mul i64 %v60, %v10
  %v62 = add i64 %v12, %v61
  %v63 = sdiv i64 %v62, %id1
  %v64 = mul i64 %v63, %id1
  %v65 = sub i64 %v62, %v64
  %v66 = mul i64 %v65, %is1
  %v67 = add i64 0, %v66
  %v68 = mul i64 %v63, %is0
  %v69 = add i64 %v67, %v68
  %v70 = add i64 %v7, %v69
  %v71 = getelementptr double, ptr addrspace(1) %a, i64 %v70
  %v72 = load double, ptr addrspace(1) %v71, align 8
  %v73 = add i64 %v32, 3
  %v74 = mul i64 %v73, %v10
  %v75 = add i64 %v12, %v74
  %v76 = sdiv i64 %v75, %id1
  %v77 = mul i64 %v76, %id1
  %v78 = sub i64 %v75, %v77
  %v79 = mul i64 %v78, %is1
  %v80 = add i64 0, %v79
  %v81 = mul i64 %v76, %is0
  %v82 = add i64 %v80, %v81
  %v83 = add i64 %v7, %v82
  %v84 = getelementptr double, ptr addrspace(1) %a, i64 %v83
  %v85 = load double, ptr addrspace(1) %v84, align 8
  %v86 = add i64 %v32, 4
  %v87 = mul i64 %v86, %v10
  %v88 = add i64 %v12, %v87
  %v89 = sdiv i64 %v88, %id1
  %v90 = mul i64 %v89, %id1
  %v91 = sub i64 %v88, %v90
  %v92 = mul i64 %v91, %is1
  %v93 = add i64 0, %v92
  %v94 = mul i64 %v89, %is0
  %v95 = add i64 %v93, %v94
  %v96 = add i64 %v7, %v95
  %v97 = getelementptr double, ptr addrspace(1) %a, i64 %v96
  %v98 = load double, ptr addrspace(1) %v97, align 8
  %v99 = add i64 %v32, 5
  %v100 = mul i64 %v99, %v10
  %v101 = add i64 %v12, %v100
  %v102 = sdiv i64 %v101, %id1
  %v103 = mul i64 %v102, %id1
  %v104 = sub i64 %v101, %v103
  %v105 = mul i64 %v104, %is1
  %v106 = add i64 0, %v105
  %v107 = mul i64 %v102, %is0
  %v108 = add i64 %v106, %v107
  %v109 = add i64 %v7, %v108
  %v110 = getelementptr double, ptr addrspace(1) %a, i64 %v109
  %v111 = load double, ptr addrspace(1) %v110, align 8
  %v112 = add i64 %v32, 6
  %v113 = mul i64 %v112, %v10
  %v114 = add i64 %v12, %v113
  %v115 = sdiv i64 %v114, %id1
  %v116 = mul i64 %v115, %id1
  %v117 = sub i64 %v114, %v116
  %v118 = mul i64 %v117, %is1
  %v119 = add i64 0, %v118
  %v120 = mul i64 %v115, %is0
  %v121 = add i64 %v119, %v120
  %v122 = add i64 %v7, %v121
  %v123 = getelementptr double, ptr addrspace(1) %a, i64 %v122
  %v124 = load double, ptr addrspace(1) %v123, align 8
  %v125 = add i64 %v32, 7
  %v126 = mul i64 %v125, %v10
  %v127 = add i64 %v12, %v126
  %v128 = sdiv i64 %v127, %id1
  %v129 = mul i64 %v128, %id1
  %v130 = sub i64 %v127, %v129
  %v131 = mul i64 %v130, %is1
  %v132 = add i64 0, %v131
  %v133 = mul i64 %v128, %is0
  %v134 = add i64 %v132, %v133
  %v135 = add i64 %v7, %v134
  %v136 = getelementptr double, ptr addrspace(1) %a, i64 %v135
  %v137 = load double, ptr addrspace(1) %v136, align 8
  %v138 = load double, ptr %m8
  %v139 = fcmp ule double %v138, %v46
  %v140 = select i1 %v139, double %v46, double %v138
  %v141 = fcmp uno double %v138, %v138
  %v142 = select i1 %v141, double %v138, double %v140
  store double %v142, ptr %m8
  %v143 = load double, ptr %m21
  %v144 = fcmp ule double %v143, %v59
  %v145 = select i1 %v144, double %v59, double %v143
  %v146 = fcmp uno double %v143, %v143
  %v147 = select i1 %v146, double %v143, double %v145
  store double %v147, ptr %m21
  %v148 = load double, ptr %m22
  %v149 = fcmp ule double %v148, %v72
  %v150 = select i1 %v149, double %v72, double %v148
  %v151 = fcmp uno double %v148, %v148
  %v152 = select i1 %v151, double %v148, double %v150
  store double %v152, ptr %m22
  %v153 = load double, ptr %m23
  %v154 = fcmp ule double %v153, %v85
  %v155 = select i1 %v154, double %v85, double %v153
  %v156 = fcmp uno double %v153, %v153
  %v157 = select i1 %v156, double %v153, double %v155
  store double %v157, ptr %m23
  %v158 = load double, ptr %m24
  %v159 = fcmp ule double %v158, %v98
  %v160 = select i1 %v159, double %v98, double %v158
  %v161 = fcmp uno double %v158, %v158
  %v162 = select i1 %v161, double %v158, double %v160
  store double %v162, ptr %m24
  %v163 = load double, ptr %m25
  %v164 = fcmp ule double %v163, %v111
  %v165 = select i1 %v164, double %v111, double %v163
  %v166 = fcmp uno double %v163, %v163
  %v167 = select i1 %v166, double %v163, double %v165
  store double %v167, ptr %m25
  %v168 = load double, ptr %m26
  %v169 = fcmp ule double %v168, %v124
  %v170 = select i1 %v169, double %v124, double %v168
  %v171 = fcmp uno double %v168, %v168
  %v172 = select i1 %v171, double %v168, double %v170
  store double %v172, ptr %m26
  %v173 = load double, ptr %m27
  %v174 = fcmp ule double %v173, %v137
  %v175 = select i1 %v174, double %v137, double %v173
  %v176 = fcmp uno double %v173, %v173
  %v177 = select i1 %v176, double %v173, double %v175
  store double %v177, ptr %m27
  %v178 = add i64 %v32, 8
  store i64 %v178, ptr %m31
  br label %L28
L30:
  %v179 = icmp slt i64 %v20, %v18
  br i1 %v179, label %L180, label %L181
L180:
  %v182 = sub i64 %v18, 1
  %v183 = add i64 %v20, 0
  %v184 = icmp slt i64 %v183, %v18
  %v185 = add i64 %v20, 1
  %v186 = icmp slt i64 %v185, %v18
  %v187 = add i64 %v20, 2
  %v188 = icmp slt i64 %v187, %v18
  %v189 = add i64 %v20, 3
  %v190 = icmp slt i64 %v189, %v18
  %v191 = add i64 %v20, 4
  %v192 = icmp slt i64 %v191, %v18
  %v193 = add i64 %v20, 5
  %v194 = icmp slt i64 %v193, %v18
  %v195 = add i64 %v20, 6
  %v196 = icmp slt i64 %v195, %v18
  %v197 = add i64 %v20, 0
  %v198 = select i1 %v184, i64 %v197, i64 %v182
  %v199 = mul i64 %v198, %v10
  %v200 = add i64 %v12, %v199
  %v201 = sdiv i64 %v200, %id1
  %v202 = mul i64 %v201, %id1
  %v203 = sub i64 %v200, %v202
  %v204 = mul i64 %v203, %is1
  %v205 = add i64 0, %v204
  %v206 = mul i64 %v201, %is0
  %v207 = add i64 %v205, %v206
  %v208 = add i64 %v7, %v207
  %v209 = getelementptr double, ptr addrspace(1) %a, i64 %v208
  %v210 = load double, ptr addrspace(1) %v209, align 8
  %v211 = add i64 %v20, 1
  %v212 = select i1 %v186, i64 %v211, i64 %v182
  %v213 = mul i64 %v212, %v10
  %v214 = add i64 %v12, %v213
  %v215 = sdiv i64 %v214, %id1
  %v216 = mul i64 %v215, %id1
  %v217 = sub i64 %v214, %v216
  %v218 = mul i64 %v217, %is1
  %v219 = add i64 0, %v218
  %v220 = mul i64 %v215, %is0
  %v221 = add i64 %v219, %v220
  %v222 = add i64 %v7, %v221
  %v223 = getelementptr double, ptr addrspace(1) %a, i64 %v222
  %v224 = load double, ptr addrspace(1) %v223, align 8
  %v225 = add i64 %v20, 2
  %v226 = select i1 %v188, i64 %v225, i64 %v182
  %v227 = mul i64 %v226, %v10
  %v228 = add i64 %v12, %v227
  %v229 = sdiv i64 %v228, %id1
  %v230 = mul i64 %v229, %id1
  %v231 = sub i64 %v228, %v230
  %v232 = mul i64 %v231, %is1
  %v233 = add i64 0, %v232
  %v234 = mul i64 %v229, %is0
  %v235 = add i64 %v233, %v234
  %v236 = add i64 %v7, %v235
  %v237 = getelementptr double, ptr addrspace(1) %a, i64 %v236
  %v238 = load double, ptr addrspace(1) %v237, align 8
  %v239 = add i64 %v20, 3
  %v240 = select i1 %v190, i64 %v239, i64 %v182
  %v241 = mul i64 %v240, %v10
  %v242 = add i64 %v12, %v241
  %v243 = sdiv i64 %v242, %id1
  %v244 = mul i64 %v243, %id1
  %v245 = sub i64 %v242, %v244
  %v246 = mul i64 %v245, %is1
  %v247 = add i64 0, %v246
  %v248 = mul i64 %v243, %is0
  %v249 = add i64 %v247, %v248
  %v250 = add i64 %v7, %v249
  %v251 = getelementptr double, ptr addrspace(1) %a, i64 %v250
  %v252 = load double, ptr addrspace(1) %v251, align 8
  %v253 = add i64 %v20, 4
  %v254 = select i1 %v192, i64 %v253, i64 %v182
  %v255 = mul i64 %v254, %v10
  %v256 = add i64 %v12, %v255
  %v257 = sdiv i64 %v256, %id1
  %v258 = mul i64 %v257, %id1
  %v259 = sub i64 %v256, %v258
  %v260 = mul i64 %v259, %is1
  %v261 = add i64 0, %v260
  %v262 = mul i64 %v257, %is0
  %v263 = add i64 %v261, %v262
  %v264 = add i64 %v7, %v263
  %v265 = getelementptr double, ptr addrspace(1) %a, i64 %v264
  %v266 = load double, ptr addrspace(1) %v265, align 8
  %v267 = add i64 %v20, 5
  %v268 = select i1 %v194, i64 %v267, i64 %v182
  %v269 = mul i64 %v268, %v10
  %v270 = add i64 %v12, %v269
  %v271 = sdiv i64 %v270, %id1
  %v272 = mul i64 %v271, %id1
  %v273 = sub i64 %v270, %v272
  %v274 = mul i64 %v273, %is1
  %v275 = add i64 0, %v274
  %v276 = mul i64 %v271, %is0
  %v277 = add i64 %v275, %v276
  %v278 = add i64 %v7, %v277
  %v279 = getelementptr double, ptr addrspace(1) %a, i64 %v278
  %v280 = load double, ptr addrspace(1) %v279, align 8
  %v281 = add i64 %v20, 6
  %v282 = select i1 %v196, i64 %v281, i64 %v182
  %v283 = mul i64 %v282, %v10
  %v284 = add i64 %v12, %v283
  %v285 = sdiv i64 %v284, %id1
  %v286 = mul i64 %v285, %id1
  %v287 = sub i64 %v284, %v286
  %v288 = mul i64 %v287, %is1
  %v289 = add i64 0, %v288
  %v290 = mul i64 %v285, %is0
  %v291 = add i64 %v289, %v290
  %v292 = add i64 %v7, %v291
  %v293 = getelementptr double, ptr addrspace(1) %a, i64 %v292
  %v294 = load double, ptr addrspace(1) %v293, align 8
  %v295 = load double, ptr %m8
  %v296 = select i1 %v184, double %v210, double 0xFFF0000000000000
  %v297 = fcmp ule double %v295, %v296
  %v298 = select i1 %v297, double %v296, double %v295
  %v299 = fcmp uno double %v295, %v295
  %v300 = select i1 %v299, double %v295, double %v298
  store double %v300, ptr %m8
  %v301 = load double, ptr %m21
  %v302 = select i1 %v186, double %v224, double 0xFFF0000000000000
  %v303 = fcmp ule double %v301, %v302
  %v304 = select i1 %v303, double %v302, double %v301
  %v305 = fcmp uno double %v301, %v301
  %v306 = select i1 %v305, double %v301, double %v304
  store double %v306, ptr %m21
  %v307 = load double, ptr %m22
  %v308 = select i1 %v188, double %v238, double 0xFFF0000000000000
  %v309 = fcmp ule double %v307, %v308
  %v310 = select i1 %v309, double %v308, double %v307
  %v311 = fcmp uno double %v307, %v307
  %v312 = select i1 %v311, double %v307, double %v310
  store double %v312, ptr %m22
  %v313 = load double, ptr %m23
  %v314 = select i1 %v190, double %v252, double 0xFFF0000000000000
  %v315 = fcmp ule double %v313, %v314
  %v316 = select i1 %v315, double %v314, double %v313
  %v317 = fcmp uno double %v313, %v313
  %v318 = select i1 %v317, double %v313, double %v316
  store double %v318, ptr %m23
  %v319 = load double, ptr %m24
  %v320 = select i1 %v192, double %v266, double 0xFFF0000000000000
  %v321 = fcmp ule double %v319, %v320
  %v322 = select i1 %v321, double %v320, double %v319
  %v323 = fcmp uno double %v319, %v319
  %v324 = select i1 %v323, double %v319, double %v322
  store double %v324, ptr %m24
  %v325 = load double, ptr %m25
  %v326 = select i1 %v194, double %v280, double 0xFFF0000000000000
  %v327 = fcmp ule double %v325, %v326
  %v328 = select i1 %v327, double %v326, double %v325
  %v329 = fcmp uno double %v325, %v325
  %v330 = select i1 %v329, double %v325, double %v328
  store double %v330, ptr %m25
  %v331 = load double, ptr %m26
  %v332 = select i1 %v196, double %v294, double 0xFFF0000000000000
  %v333 = fcmp ule double %v331, %v332
  %v334 = select i1 %v333, double %v332, double %v331
  %v335 = fcmp uno double %v331, %v331
  %v336 = select i1 %v335, double %v331, double %v334
  store double %v336, ptr %m26
  br label %L181
L181:
  %v337 = load double, ptr %m8
  %v338 = load double, ptr %m21
  %v339 = fcmp ule double %v337, %v338
  %v340 = select i1 %v339, double %v338, double %v337
  %v341 = fcmp uno double %v337, %v337
  %v342 = select i1 %v341, double %v337, double %v340
  store double %v342, ptr %m8
  %v343 = load double, ptr %m8
  %v344 = load double, ptr %m22
  %v345 = fcmp ule double %v343, %v344
  %v346 = select i1 %v345, double %v344, double %v343
  %v347 = fcmp uno double %v343, %v343
  %v348 = select i1 %v347, double %v343, double %v346
  store double %v348, ptr %m8
  %v349 = load double, ptr %m8
  %v350 = load double, ptr %m23
  %v351 = fcmp ule double %v349, %v350
  %v352 = select i1 %v351, double %v350, double %v349
  %v353 = fcmp uno double %v349, %v349
  %v354 = select i1 %v353, double %v349, double %v352
  store double %v354, ptr %m8
  %v355 = load double, ptr %m8
  %v356 = load double, ptr %m24
  %v357 = fcmp ule double %v355, %v356
  %v358 = select i1 %v357, double %v356, double %v355
  %v359 = fcmp uno double %v355, %v355
  %v360 = select i1 %v359, double %v355, double %v358
  store double %v360, ptr %m8
  %v361 = load double, ptr %m8
  %v362 = load double, ptr %m25
  %v363 = fcmp ule double %v361, %v362
  %v364 = select i1 %v363, double %v362, double %v361
  %v365 = fcmp uno double %v361, %v361
  %v366 = select i1 %v365, double %v361, double %v364
  store double %v366, ptr %m8
  %v367 = load double, ptr %m8
  %v368 = load double, ptr %m26
  %v369 = fcmp ule double %v367, %v368
  %v370 = select i1 %v369, double %v368, double %v367
  %v371 = fcmp uno double %v367, %v367
  %v372 = select i1 %v371, double %v367, double %v370
  store double %v372, ptr %m8
  %v373 = load double, ptr %m8
  %v374 = load double, ptr %m27
  %v375 = fcmp ule double %v373, %v374
  %v376 = select i1 %v375, double %v374, double %v373
  %v377 = fcmp uno double %v373, %v373
  %v378 = select i1 %v377, double %v373, double %v376
  store double %v378, ptr %m8
  %v379 = getelementptr double, ptr addrspace(3) @shared, i64 %t
  %v380 = load double, ptr %m8
  store double %v380, ptr addrspace(3) %v379, align 8
  call void @llvm.nvvm.barrier.cta.sync.aligned.all(i32 0)
  %v381 = icmp slt i64 %t, 128
  br i1 %v381, label %L382, label %L383
L382:
  %v384 = add i64 %t, 128
  %v385 = getelementptr double, ptr addrspace(3) @shared, i64 %v384
  %v386 = load double, ptr addrspace(3) %v379, align 8
  %v387 = load double, ptr addrspace(3) %v385, align 8
  %v388 = fcmp ule double %v386, %v387
  %v389 = select i1 %v388, double %v387, double %v386
  %v390 = fcmp uno double %v386, %v386
  %v391 = select i1 %v390, double %v386, double %v389
  store double %v391, ptr addrspace(3) %v379, align 8
  br label %L383
L383:
  call void @llvm.nvvm.barrier.cta.sync.aligned.all(i32 0)
  %v392 = icmp slt i64 %t, 64
  br i1 %v392, label %L393, label %L394
L393:
  %v395 = add i64 %t, 64
  %v396 = getelementptr double, ptr addrspace(3) @shared, i64 %v395
  %v397 = load double, ptr addrspace(3) %v379, align 8
  %v398 = load double, ptr addrspace(3) %v396, align 8
  %v399 = fcmp ule double %v397, %v398
  %v400 = select i1 %v399, double %v398, double %v397
  %v401 = fcmp uno double %v397, %v397
  %v402 = select i1 %v401, double %v397, double %v400
  store double %v402, ptr addrspace(3) %v379, align 8
  br label %L394
L394:
  call void @llvm.nvvm.barrier.cta.sync.aligned.all(i32 0)
  %v403 = icmp slt i64 %t, 32
  br i1 %v403, label %L404, label %L405
L404:
  %v406 = add i64 %t, 32
  %v407 = getelementptr double, ptr addrspace(3) @shared, i64 %v406
  %v408 = load double, ptr addrspace(3) %v379, align 8
  %v409 = load double, ptr addrspace(3) %v407, align 8
  %v410 = fcmp ule double %v408, %v409
  %v411 = select i1 %v410, double %v409, double %v408
  %v412 = fcmp uno double %v408, %v408
  %v413 = select i1 %v412, double %v408, double %v411
  store double %v413, ptr addrspace(3) %v379, align 8
  br label %L405
L405:
  %v414 = icmp slt i64 %t, 32
  %v415 = and i1 %v414, %v5
  br i1 %v415, label %L416, label %L417
L416:
  %v418 = load double, ptr addrspace(3) %v379, align 8
  %v419 = mul i64 %p, %results
  %v420 = add i64 %v419, %v4
  %v421 = getelementptr double, ptr addrspace(1) %out, i64 %v420
  store double %v418, ptr addrspace(1) %v421, align 8
  br label %L417
L417:
  ret void
}
