
declare i32 @llvm.nvvm.read.ptx.sreg.tid.x()
declare i32 @llvm.nvvm.read.ptx.sreg.ctaid.x()
declare i32 @llvm.nvvm.read.ptx.sreg.ctaid.y()
declare i32 @llvm.nvvm.read.ptx.sreg.ctaid.z()
declare i32 @llvm.nvvm.read.ptx.sreg.ntid.x()
declare i32 @llvm.nvvm.read.ptx.sreg.nctaid.x()
declare void @llvm.nvvm.barrier.cta.sync.aligned.all(i32)

declare <1 x float> @llvm.fma.v1f32(<1 x float>, <1 x float>, <1 x float>)
declare float @llvm.fma.f32(float, float, float)
declare float @llvm.nvvm.cos.approx.f(float)
declare float @llvm.nvvm.sin.approx.f(float)
declare float @llvm.sqrt.f32(float)
define ptx_kernel void @philox_normal_near(ptr addrspace(1) %out, i64 %n, i64 %seed, i64 %counter, double %a, double %b, double %stop) {
entry:
  %m14 = alloca i64, align 64
  %t32 = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %t = zext i32 %t32 to i64
  %k32 = call i32 @llvm.nvvm.read.ptx.sreg.ctaid.x()
  %k = zext i32 %k32 to i64
  %w32 = call i32 @llvm.nvvm.read.ptx.sreg.ntid.x()
  %w = zext i32 %w32 to i64
  %g32 = call i32 @llvm.nvvm.read.ptx.sreg.nctaid.x()
  %g = zext i32 %g32 to i64
  %v1 = fptrunc double %a to float
  %v2 = fptrunc double %b to float
  %v3 = fptrunc double %stop to float
  %v4 = mul i64 %k, %w
  %v5 = add i64 %v4, %t
  %v6 = mul i64 %w, %g
  %v7 = sub i64 %n, 1
  %v8 = mul i64 %v6, 4
  %v9 = sdiv i64 %v7, %v8
  %v10 = add i64 %v9, 1
  store i64 0, ptr %m14
  br label %L11
L11:
  %v15 = load i64, ptr %m14
  %v16 = icmp slt i64 %v15, %v10
  br i1 %v16, label %L12, label %L13
L12:
  %v17 = mul i64 %v15, %v6
  %v18 = mul i64 %v17, 4
  %v19 = add i64 %counter, %v15
  %v20 = and i64 %v19, 4294967295
  %v21 = lshr i64 %v19, 32
  %v22 = and i64 %v5, 4294967295
  %v23 = and i64 %seed, 4294967295
  %v24 = lshr i64 %seed, 32
  %v25 = mul i64 %v20, 3528531795
  %v26 = mul i64 %v22, 3449720151
  %v27 = lshr i64 %v25, 32
  %v28 = lshr i64 %v26, 32
  %v29 = xor i64 %v28, %v21
  %v30 = xor i64 %v29, %v23
  %v31 = and i64 %v26, 4294967295
  %v32 = xor i64 %v27, 0
  %v33 = xor i64 %v32, %v24
  %v34 = and i64 %v25, 4294967295
  %v35 = add i64 %v23, 2654435769
  %v36 = and i64 %v35, 4294967295
  %v37 = add i64 %v24, 3144134277
  %v38 = and i64 %v37, 4294967295
  %v39 = mul i64 %v30, 3528531795
  %v40 = mul i64 %v33, 3449720151
  %v41 = lshr i64 %v39, 32
  %v42 = lshr i64 %v40, 32
  %v43 = xor i64 %v42, %v31
  %v44 = xor i64 %v43, %v36
  %v45 = and i64 %v40, 4294967295
  %v46 = xor i64 %v41, %v34
  %v47 = xor i64 %v46, %v38
  %v48 = and i64 %v39, 4294967295
  %v49 = add i64 %v36, 2654435769
  %v50 = and i64 %v49, 4294967295
  %v51 = add i64 %v38, 3144134277
  %v52 = and i64 %v51, 4294967295
  %v53 = mul i64 %v44, 3528531795
  %v54 = mul i64 %v47, 3449720151
  %v55 = lshr i64 %v53, 32
  %v56 = lshr i64 %v54, 32
  %v57 = xor i64 %v56, %v45
  %v58 = xor i64 %v57, %v50
  %v59 = and i64 %v54, 4294967295
  %v60 = xor i64 %v55, %v48
  %v61 = xor i64 %v60, %v52
  %v62 = and i64 %v53, 4294967295
  %v63 = add i64 %v50, 2654435769
  %v64 = and i64 %v63, 4294967295
  %v65 = add i64 %v52, 3144134277
  %v66 = and i64 %v65, 4294967295
  %v67 = mul i64 %v58, 3528531795
  %v68 = mul i64 %v61, 3449720151
  %v69 = lshr i64 %v67, 32
  %v70 = lshr i64 %v68, 32
  %v71 = xor i64 %v70, %v59
  %v72 = xor i64 %v71, %v64
  %v73 = and i64 %v68, 4294967295
  %v74 = xor i64 %v69, %v62
  %v75 = xor i64 %v74, %v66
  %v76 = and i64 %v67, 4294967295
  %v77 = add i64 %v64, 2654435769
  %v78 = and i64 %v77, 4294967295
  %v79 = add i64 %v66, 3144134277
  %v80 = and i64 %v79, 4294967295
  %v81 = mul i64 %v72, 3528531795
  %v82 = mul i64 %v75, 3449720151
  %v83 = lshr i64 %v81, 32
  %v84 = lshr i64 %v82, 32
  %v85 = xor i64 %v84, %v73
  %v86 = xor i64 %v85, %v78
  %v87 = and i64 %v82, 4294967295
  %v88 = xor i64 %v83, %v76
  %v89 = xor i64 %v88, %v80
  %v90 = and i64 %v81, 4294967295
  %v91 = add i64 %v78, 2654435769
  %v92 = and i64 %v91, 4294967295
  %v93 = add i64 %v80, 3144134277
  %v94 = and i64 %v93, 4294967295
  %v95 = mul i64 %v86, 3528531795
  %v96 = mul i64 %v89, 3449720151
  %v97 = lshr i64 %v95, 32
  %v98 = lshr i64 %v96, 32
  %v99 = xor i64 %v98, %v87
  %v100 = xor i64 %v99, %v92
  %v101 = and i64 %v96, 4294967295
  %v102 = xor i64 %v97, %v90
  %v103 = xor i64 %v102, %v94
  %v104 = and i64 %v95, 4294967295
  %v105 = add i64 %v92, 2654435769
  %v106 = and i64 %v105, 4294967295
  %v107 = add i64 %v94, 3144134277
  %v108 = and i64 %v107, 4294967295
  %v109 = mul i64 %v100, 3528531795
  %v110 = mul i64 %v103, 3449720151
  %v111 = lshr i64 %v109, 32
  %v112 = lshr i64 %v110, 32
  %v113 = xor i64 %v112, %v101
  %v114 = xor i64 %v113, %v106
  %v115 = and i64 %v110, 4294967295
  %v116 = xor i64 %v111, %v104
  %v117 = xor i64 %v116, %v108
  %v118 = and i64 %v109, 4294967295
  %v119 = add i64 %v106, 2654435769
  %v120 = and i64 %v119, 4294967295
  %v121 = add i64 %v108, 3144134277
  %v122 = and i64 %v121, 4294967295
  %v123 = mul i64 %v114, 3528531795
  %v124 = mul i64 %v117, 3449720151
  %v125 = lshr i64 %v123, 32
  %v126 = lshr i64 %v124, 32
  %v127 = xor i64 %v126, %v115
  %v128 = xor i64 %v127, %v120
  %v129 = and i64 %v124, 4294967295
  %v130 = xor i64 %v125, %v118
  %v131 = xor i64 %v130, %v122
  %v132 = and i64 %v123, 4294967295
  %v133 = add i64 %v120, 2654435769
  %v134 = and i64 %v133, 4294967295
  %v135 = add i64 %v122, 3144134277
  %v136 = and i64 %v135, 4294967295
  %v137 = mul i64 %v128, 3528531795
  %v138 = mul i64 %v131, 3449720151
  %v139 = lshr i64 %v137, 32
  %v140 = lshr i64 %v138, 32
  %v141 = xor i64 %v140, %v129
  %v142 = xor i64 %v141, %v134
  %v143 = and i64 %v138, 4294967295
  %v144 = xor i64 %v139, %v132
  %v145 = xor i64 %v144, %v136
  %v146 = and i64 %v137, 4294967295
  %v147 = add i64 %v134, 2654435769
  %v148 = and i64 %v147, 4294967295
  %v149 = add i64 %v136, 3144134277
  %v150 = and i64 %v149, 4294967295
  %v151 = mul i64 %v142, 3528531795
  %v152 = mul i64 %v145, 3449720151
  %v153 = lshr i64 %v151, 32
  %v154 = lshr i64 %v152, 32
  %v155 = xor i64 %v154, %v143
  %v156 = xor i64 %v155, %v148
  %v157 = and i64 %v152, 4294967295
  %v158 = xor i64 %v153, %v146
  %v159 = xor i64 %v158, %v150
  %v160 = and i64 %v151, 4294967295
  %v161 = add i64 %v148, 2654435769
  %v162 = and i64 %v161, 4294967295
  %v163 = add i64 %v150, 3144134277
  %v164 = and i64 %v163, 4294967295
  %v165 = uitofp i64 %v156 to float
  %v166 = call float @llvm.fma.f32(float %v165, float 0x3DF0000000000000, float 0x3DE0000000000000)
  %v167 = insertelement <1 x float> poison, float %v166, i64 0
  %v168 = shufflevector <1 x float> %v167, <1 x float> poison, <1 x i32> zeroinitializer
  %v169 = fcmp olt <1 x float> %v168, splat (float 0x3810000000000000)
  %v170 = fmul contract <1 x float> %v168, splat (float 0x4180000000000000)
  %v171 = select <1 x i1> %v169, <1 x float> %v170, <1 x float> %v168
  %v172 = bitcast <1 x float> %v171 to <1 x i32>
  %v173 = sub <1 x i32> %v172, splat (i32 1060439283)
  %v174 = ashr <1 x i32> %v173, splat (i32 23)
  %v175 = shl <1 x i32> %v174, splat (i32 23)
  %v176 = sub <1 x i32> %v172, %v175
  %v177 = bitcast <1 x i32> %v176 to <1 x float>
  %v178 = fsub contract <1 x float> %v177, splat (float 0x3FF0000000000000)
  %v179 = select <1 x i1> %v169, <1 x i32> splat (i32 25), <1 x i32> splat (i32 0)
  %v180 = sub <1 x i32> %v174, %v179
  %v181 = add <1 x i32> %v180, splat (i32 1262485504)
  %v182 = bitcast <1 x i32> %v181 to <1 x float>
  %v183 = fsub contract <1 x float> %v182, splat (float 0x4168000000000000)
  %v184 = fadd contract <1 x float> %v178, splat (float 0x4000000000000000)
  %v185 = fdiv <1 x float> %v178, %v184
  %v186 = fmul contract <1 x float> %v185, %v185
  %v187 = fmul contract <1 x float> %v178, %v178
  %v188 = fmul contract <1 x float> %v187, splat (float 0x3FE0000000000000)
  %v189 = call <1 x float> @llvm.fma.v1f32(<1 x float> splat (float 0x3FCE423200000000), <1 x float> %v186, <1 x float> splat (float 0x3FD2431400000000))
  %v190 = call <1 x float> @llvm.fma.v1f32(<1 x float> %v189, <1 x float> %v186, <1 x float> splat (float 0x3FD999A980000000))
  %v191 = call <1 x float> @llvm.fma.v1f32(<1 x float> %v190, <1 x float> %v186, <1 x float> splat (float 0x3FE5555540000000))
  %v192 = fmul contract <1 x float> %v186, %v191
  %v193 = fadd contract <1 x float> %v188, %v192
  %v194 = fmul contract <1 x float> %v185, %v193
  %v195 = fsub contract <1 x float> %v188, %v194
  %v196 = fsub contract <1 x float> %v178, %v195
  %v197 = call <1 x float> @llvm.fma.v1f32(<1 x float> %v183, <1 x float> splat (float 0x3EB7F7D1C0000000), <1 x float> %v196)
  %v198 = call <1 x float> @llvm.fma.v1f32(<1 x float> %v183, <1 x float> splat (float 0x3FE62E4000000000), <1 x float> %v197)
  %v199 = fcmp oeq <1 x float> %v168, splat (float 0x0000000000000000)
  %v200 = select <1 x i1> %v199, <1 x float> splat (float 0xFFF0000000000000), <1 x float> %v198
  %v201 = fcmp olt <1 x float> %v168, splat (float 0x0000000000000000)
  %v202 = select <1 x i1> %v201, <1 x float> splat (float 0x7FF8000000000000), <1 x float> %v200
  %v203 = fcmp olt <1 x float> %v168, splat (float 0x7FF0000000000000)
  %v204 = select <1 x i1> %v203, <1 x float> %v202, <1 x float> %v168
  %v205 = extractelement <1 x float> %v204, i64 0
  %v206 = fmul contract float %v205, 0xC000000000000000
  %v207 = call float @llvm.sqrt.f32(float %v206)
  %v208 = uitofp i64 %v157 to float
  %v209 = call float @llvm.fma.f32(float %v208, float 0x3E1921FB60000000, float 0x3E0921FB60000000)
  %v210 = call float @llvm.nvvm.sin.approx.f(float %v209)
  %v211 = fmul contract float %v207, %v210
  %v212 = call float @llvm.nvvm.cos.approx.f(float %v209)
  %v213 = fmul contract float %v207, %v212
  %v214 = uitofp i64 %v159 to float
  %v215 = call float @llvm.fma.f32(float %v214, float 0x3DF0000000000000, float 0x3DE0000000000000)
  %v216 = insertelement <1 x float> poison, float %v215, i64 0
  %v217 = shufflevector <1 x float> %v216, <1 x float> poison, <1 x i32> zeroinitializer
  %v218 = fcmp olt <1 x float> %v217, splat (float 0x3810000000000000)
  %v219 = fmul contract <1 x float> %v217, splat (float 0x4180000000000000)
  %v220 = select <1 x i1> %v218, <1 x float> %v219, <1 x float> %v217
  %v221 = bitcast <1 x float> %v220 to <1 x i32>
  %v222 = sub <1 x i32> %v221, splat (i32 1060439283)
  %v223 = ashr <1 x i32> %v222, splat (i32 23)
  %v224 = shl <1 x i32> %v223, splat (i32 23)
  %v225 = sub <1 x i32> %v221, %v224
  %v226 = bitcast <1 x i32> %v225 to <1 x float>
  %v227 = fsub contract <1 x float> %v226, splat (float 0x3FF0000000000000)
  %v228 = select <1 x i1> %v218, <1 x i32> splat (i32 25), <1 x i32> splat (i32 0)
  %v229 = sub <1 x i32> %v223, %v228
  %v230 = add <1 x i32> %v229, splat (i32 1262485504)
  %v231 = bitcast <1 x i32> %v230 to <1 x float>
  %v232 = fsub contract <1 x float> %v231, splat (float 0x4168000000000000)
  %v233 = fadd contract <1 x float> %v227, splat (float 0x4000000000000000)
  %v234 = fdiv <1 x float> %v227, %v233
  %v235 = fmul contract <1 x float> %v234, %v234
  %v236 = fmul contract <1 x float> %v227, %v227
  %v237 = fmul contract <1 x float> %v236, splat (float 0x3FE0000000000000)
  %v238 = call <1 x float> @llvm.fma.v1f32(<1 x float> splat (float 0x3FCE423200000000), <1 x float> %v235, <1 x float> splat (float 0x3FD2431400000000))
  %v239 = call <1 x float> @llvm.fma.v1f32(<1 x float> %v238, <1 x float> %v235, <1 x float> splat (float 0x3FD999A980000000))
  %v240 = call <1 x float> @llvm.fma.v1f32(<1 x float> %v239, <1 x float> %v235, <1 x float> splat (float 0x3FE5555540000000))
  %v241 = fmul contract <1 x float> %v235, %v240
  %v242 = fadd contract <1 x float> %v237, %v241
  %v243 = fmul contract <1 x float> %v234, %v242
  %v244 = fsub contract <1 x float> %v237, %v243
  %v245 = fsub contract <1 x float> %v227, %v244
  %v246 = call <1 x float> @llvm.fma.v1f32(<1 x float> %v232, <1 x float> splat (float 0x3EB7F7D1C0000000), <1 x float> %v245)
  %v247 = call <1 x float> @llvm.fma.v1f32(<1 x float> %v232, <1 x float> splat (float 0x3FE62E4000000000), <1 x float> %v246)
  %v248 = fcmp oeq <1 x float> %v217, splat (float 0x0000000000000000)
  %v249 = select <1 x i1> %v248, <1 x float> splat (float 0xFFF0000000000000), <1 x float> %v247
  %v250 = fcmp olt <1 x float> %v217, splat (float 0x0000000000000000)
  %v251 = select <1 x i1> %v250, <1 x float> splat (float 0x7FF8000000000000), <1 x float> %v249
  %v252 = fcmp olt <1 x float> %v217, splat (float 0x7FF0000000000000)
  %v253 = select <1 x i1> %v252, <1 x float> %v251, <1 x float> %v217
  %v254 = extractelement <1 x float> %v253, i64 0
  %v255 = fmul contract float %v254, 0xC000000000000000
  %v256 = call float @llvm.sqrt.f32(float %v255)
  %v257 = uitofp i64 %v160 to float
  %v258 = call float @llvm.fma.f32(float %v257, float 0x3E1921FB60000000, float 0x3E0921FB60000000)
  %v259 = call float @llvm.nvvm.sin.approx.f(float %v258)
  %v260 = fmul contract float %v256, %v259
  %v261 = call float @llvm.nvvm.cos.approx.f(float %v258)
  %v262 = fmul contract float %v256, %v261
  %v263 = call float @llvm.fma.f32(float %v211, float %v1, float %v2)
  %v264 = fcmp oeq float %v263, %v3
  %v265 = select i1 %v264, float %v2, float %v263
  %v266 = call float @llvm.fma.f32(float %v213, float %v1, float %v2)
  %v267 = fcmp oeq float %v266, %v3
  %v268 = select i1 %v267, float %v2, float %v266
  %v269 = call float @llvm.fma.f32(float %v260, float %v1, float %v2)
  %v270 = fcmp oeq float %v269, %v3
  %v271 = select i1 %v270, float %v2, float %v269
  %v272 = call float @llvm.fma.f32(float %v262, float %v1, float %v2)
  %v273 = fcmp oeq float %v272, %v3
  %v274 = select i1 %v273, float %v2, float %v272
  %v275 = mul i64 %v5, 4
  %v276 = add i64 %v275, 0
  %v277 = add i64 %v18, %v276
  %v278 = mul i64 %v5, 4
  %v279 = add i64 %v278, 1
  %v280 = add i64 %v18, %v279
  %v281 = mul i64 %v5, 4
  %v282 = add i64 %v281, 2
  %v283 = add i64 %v18, %v282
  %v284 = mul i64 %v5, 4
  %v285 = add i64 %v284, 3
  %v286 = add i64 %v18, %v285
  %v287 = icmp slt i64 %v286, %n
  br i1 %v287, label %L288, label %L289
L288:
  %v290 = insertelement <4 x float> poison, float %v265, i64 0
  %v291 = insertelement <4 x float> %v290, float %v268, i64 1
  %v292 = insertelement <4 x float> %v291, float %v271, i64 2
  %v293 = insertelement <4 x float> %v292, float %v274, i64 3
  %v294 = getelementptr float, ptr addrspace(1) %out, i64 %v277
  store <4 x float> %v293, ptr addrspace(1) %v294, align 16
  br label %L289
L289:
  %v295 = icmp slt i64 %v277, %n
  %v296 = select i1 %v287, i1 false, i1 %v295
  br i1 %v296, label %L297, label %L298
L297:
  %v299 = getelementptr float, ptr addrspace(1) %out, i64 %v277
  store float %v265, ptr addrspace(1) %v299, align 4
  br label %L298
L298:
  %v300 = icmp slt i64 %v280, %n
  %v301 = select i1 %v287, i1 false, i1 %v300
  br i1 %v301, label %L302, label %L303
L302:
  %v304 = getelementptr float, ptr addrspace(1) %out, i64 %v280
  store float %v268, ptr addrspace(1) %v304, align 4
  br label %L303
L303:
  %v305 = icmp slt i64 %v283, %n
  %v306 = select i1 %v287, i1 false, i1 %v305
  br i1 %v306, label %L307, label %L308
L307:
  %v309 = getelementptr float, ptr addrspace(1) %out, i64 %v283
  store float %v271, ptr addrspace(1) %v309, align 4
  br label %L308
L308:
  %v310 = add i64 %v15, 1
  store i64 %v310, ptr %m14
  br label %L11
L13:
  ret void
}
