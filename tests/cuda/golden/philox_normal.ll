
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
  %v17 = add i64 %counter, %v15
  %v18 = and i64 %v17, 4294967295
  %v19 = lshr i64 %v17, 32
  %v20 = and i64 %v5, 4294967295
  %v21 = and i64 %seed, 4294967295
  %v22 = lshr i64 %seed, 32
  %v23 = mul i64 %v18, 3528531795
  %v24 = mul i64 %v20, 3449720151
  %v25 = lshr i64 %v23, 32
  %v26 = lshr i64 %v24, 32
  %v27 = xor i64 %v26, %v19
  %v28 = xor i64 %v27, %v21
  %v29 = and i64 %v24, 4294967295
  %v30 = xor i64 %v25, 0
  %v31 = xor i64 %v30, %v22
  %v32 = and i64 %v23, 4294967295
  %v33 = add i64 %v21, 2654435769
  %v34 = and i64 %v33, 4294967295
  %v35 = add i64 %v22, 3144134277
  %v36 = and i64 %v35, 4294967295
  %v37 = mul i64 %v28, 3528531795
  %v38 = mul i64 %v31, 3449720151
  %v39 = lshr i64 %v37, 32
  %v40 = lshr i64 %v38, 32
  %v41 = xor i64 %v40, %v29
  %v42 = xor i64 %v41, %v34
  %v43 = and i64 %v38, 4294967295
  %v44 = xor i64 %v39, %v32
  %v45 = xor i64 %v44, %v36
  %v46 = and i64 %v37, 4294967295
  %v47 = add i64 %v34, 2654435769
  %v48 = and i64 %v47, 4294967295
  %v49 = add i64 %v36, 3144134277
  %v50 = and i64 %v49, 4294967295
  %v51 = mul i64 %v42, 3528531795
  %v52 = mul i64 %v45, 3449720151
  %v53 = lshr i64 %v51, 32
  %v54 = lshr i64 %v52, 32
  %v55 = xor i64 %v54, %v43
  %v56 = xor i64 %v55, %v48
  %v57 = and i64 %v52, 4294967295
  %v58 = xor i64 %v53, %v46
  %v59 = xor i64 %v58, %v50
  %v60 = and i64 %v51, 4294967295
  %v61 = add i64 %v48, 2654435769
  %v62 = and i64 %v61, 4294967295
  %v63 = add i64 %v50, 3144134277
  %v64 = and i64 %v63, 4294967295
  %v65 = mul i64 %v56, 3528531795
  %v66 = mul i64 %v59, 3449720151
  %v67 = lshr i64 %v65, 32
  %v68 = lshr i64 %v66, 32
  %v69 = xor i64 %v68, %v57
  %v70 = xor i64 %v69, %v62
  %v71 = and i64 %v66, 4294967295
  %v72 = xor i64 %v67, %v60
  %v73 = xor i64 %v72, %v64
  %v74 = and i64 %v65, 4294967295
  %v75 = add i64 %v62, 2654435769
  %v76 = and i64 %v75, 4294967295
  %v77 = add i64 %v64, 3144134277
  %v78 = and i64 %v77, 4294967295
  %v79 = mul i64 %v70, 3528531795
  %v80 = mul i64 %v73, 3449720151
  %v81 = lshr i64 %v79, 32
  %v82 = lshr i64 %v80, 32
  %v83 = xor i64 %v82, %v71
  %v84 = xor i64 %v83, %v76
  %v85 = and i64 %v80, 4294967295
  %v86 = xor i64 %v81, %v74
  %v87 = xor i64 %v86, %v78
  %v88 = and i64 %v79, 4294967295
  %v89 = add i64 %v76, 2654435769
  %v90 = and i64 %v89, 4294967295
  %v91 = add i64 %v78, 3144134277
  %v92 = and i64 %v91, 4294967295
  %v93 = mul i64 %v84, 3528531795
  %v94 = mul i64 %v87, 3449720151
  %v95 = lshr i64 %v93, 32
  %v96 = lshr i64 %v94, 32
  %v97 = xor i64 %v96, %v85
  %v98 = xor i64 %v97, %v90
  %v99 = and i64 %v94, 4294967295
  %v100 = xor i64 %v95, %v88
  %v101 = xor i64 %v100, %v92
  %v102 = and i64 %v93, 4294967295
  %v103 = add i64 %v90, 2654435769
  %v104 = and i64 %v103, 4294967295
  %v105 = add i64 %v92, 3144134277
  %v106 = and i64 %v105, 4294967295
  %v107 = mul i64 %v98, 3528531795
  %v108 = mul i64 %v101, 3449720151
  %v109 = lshr i64 %v107, 32
  %v110 = lshr i64 %v108, 32
  %v111 = xor i64 %v110, %v99
  %v112 = xor i64 %v111, %v104
  %v113 = and i64 %v108, 4294967295
  %v114 = xor i64 %v109, %v102
  %v115 = xor i64 %v114, %v106
  %v116 = and i64 %v107, 4294967295
  %v117 = add i64 %v104, 2654435769
  %v118 = and i64 %v117, 4294967295
  %v119 = add i64 %v106, 3144134277
  %v120 = and i64 %v119, 4294967295
  %v121 = mul i64 %v112, 3528531795
  %v122 = mul i64 %v115, 3449720151
  %v123 = lshr i64 %v121, 32
  %v124 = lshr i64 %v122, 32
  %v125 = xor i64 %v124, %v113
  %v126 = xor i64 %v125, %v118
  %v127 = and i64 %v122, 4294967295
  %v128 = xor i64 %v123, %v116
  %v129 = xor i64 %v128, %v120
  %v130 = and i64 %v121, 4294967295
  %v131 = add i64 %v118, 2654435769
  %v132 = and i64 %v131, 4294967295
  %v133 = add i64 %v120, 3144134277
  %v134 = and i64 %v133, 4294967295
  %v135 = mul i64 %v126, 3528531795
  %v136 = mul i64 %v129, 3449720151
  %v137 = lshr i64 %v135, 32
  %v138 = lshr i64 %v136, 32
  %v139 = xor i64 %v138, %v127
  %v140 = xor i64 %v139, %v132
  %v141 = and i64 %v136, 4294967295
  %v142 = xor i64 %v137, %v130
  %v143 = xor i64 %v142, %v134
  %v144 = and i64 %v135, 4294967295
  %v145 = add i64 %v132, 2654435769
  %v146 = and i64 %v145, 4294967295
  %v147 = add i64 %v134, 3144134277
  %v148 = and i64 %v147, 4294967295
  %v149 = mul i64 %v140, 3528531795
  %v150 = mul i64 %v143, 3449720151
  %v151 = lshr i64 %v149, 32
  %v152 = lshr i64 %v150, 32
  %v153 = xor i64 %v152, %v141
  %v154 = xor i64 %v153, %v146
  %v155 = and i64 %v150, 4294967295
  %v156 = xor i64 %v151, %v144
  %v157 = xor i64 %v156, %v148
  %v158 = and i64 %v149, 4294967295
  %v159 = add i64 %v146, 2654435769
  %v160 = and i64 %v159, 4294967295
  %v161 = add i64 %v148, 3144134277
  %v162 = and i64 %v161, 4294967295
  %v163 = uitofp i64 %v154 to float
  %v164 = call float @llvm.fma.f32(float %v163, float 0x3DF0000000000000, float 0x3DE0000000000000)
  %v165 = insertelement <1 x float> poison, float %v164, i64 0
  %v166 = shufflevector <1 x float> %v165, <1 x float> poison, <1 x i32> zeroinitializer
  %v167 = fcmp olt <1 x float> %v166, splat (float 0x3810000000000000)
  %v168 = fmul contract <1 x float> %v166, splat (float 0x4180000000000000)
  %v169 = select <1 x i1> %v167, <1 x float> %v168, <1 x float> %v166
  %v170 = bitcast <1 x float> %v169 to <1 x i32>
  %v171 = sub <1 x i32> %v170, splat (i32 1060439283)
  %v172 = ashr <1 x i32> %v171, splat (i32 23)
  %v173 = shl <1 x i32> %v172, splat (i32 23)
  %v174 = sub <1 x i32> %v170, %v173
  %v175 = bitcast <1 x i32> %v174 to <1 x float>
  %v176 = fsub contract <1 x float> %v175, splat (float 0x3FF0000000000000)
  %v177 = select <1 x i1> %v167, <1 x i32> splat (i32 25), <1 x i32> splat (i32 0)
  %v178 = sub <1 x i32> %v172, %v177
  %v179 = add <1 x i32> %v178, splat (i32 1262485504)
  %v180 = bitcast <1 x i32> %v179 to <1 x float>
  %v181 = fsub contract <1 x float> %v180, splat (float 0x4168000000000000)
  %v182 = fadd contract <1 x float> %v176, splat (float 0x4000000000000000)
  %v183 = fdiv <1 x float> %v176, %v182
  %v184 = fmul contract <1 x float> %v183, %v183
  %v185 = fmul contract <1 x float> %v176, %v176
  %v186 = fmul contract <1 x float> %v185, splat (float 0x3FE0000000000000)
  %v187 = call <1 x float> @llvm.fma.v1f32(<1 x float> splat (float 0x3FCE423200000000), <1 x float> %v184, <1 x float> splat (float 0x3FD2431400000000))
  %v188 = call <1 x float> @llvm.fma.v1f32(<1 x float> %v187, <1 x float> %v184, <1 x float> splat (float 0x3FD999A980000000))
  %v189 = call <1 x float> @llvm.fma.v1f32(<1 x float> %v188, <1 x float> %v184, <1 x float> splat (float 0x3FE5555540000000))
  %v190 = fmul contract <1 x float> %v184, %v189
  %v191 = fadd contract <1 x float> %v186, %v190
  %v192 = fmul contract <1 x float> %v183, %v191
  %v193 = fsub contract <1 x float> %v186, %v192
  %v194 = fsub contract <1 x float> %v176, %v193
  %v195 = call <1 x float> @llvm.fma.v1f32(<1 x float> %v181, <1 x float> splat (float 0x3EB7F7D1C0000000), <1 x float> %v194)
  %v196 = call <1 x float> @llvm.fma.v1f32(<1 x float> %v181, <1 x float> splat (float 0x3FE62E4000000000), <1 x float> %v195)
  %v197 = fcmp oeq <1 x float> %v166, splat (float 0x0000000000000000)
  %v198 = select <1 x i1> %v197, <1 x float> splat (float 0xFFF0000000000000), <1 x float> %v196
  %v199 = fcmp olt <1 x float> %v166, splat (float 0x0000000000000000)
  %v200 = select <1 x i1> %v199, <1 x float> splat (float 0x7FF8000000000000), <1 x float> %v198
  %v201 = fcmp olt <1 x float> %v166, splat (float 0x7FF0000000000000)
  %v202 = select <1 x i1> %v201, <1 x float> %v200, <1 x float> %v166
  %v203 = extractelement <1 x float> %v202, i64 0
  %v204 = fmul contract float %v203, 0xC000000000000000
  %v205 = call float @llvm.sqrt.f32(float %v204)
  %v206 = uitofp i64 %v155 to float
  %v207 = call float @llvm.fma.f32(float %v206, float 0x3E1921FB60000000, float 0x3E0921FB60000000)
  %v208 = call float @llvm.nvvm.sin.approx.f(float %v207)
  %v209 = fmul contract float %v205, %v208
  %v210 = call float @llvm.nvvm.cos.approx.f(float %v207)
  %v211 = fmul contract float %v205, %v210
  %v212 = uitofp i64 %v157 to float
  %v213 = call float @llvm.fma.f32(float %v212, float 0x3DF0000000000000, float 0x3DE0000000000000)
  %v214 = insertelement <1 x float> poison, float %v213, i64 0
  %v215 = shufflevector <1 x float> %v214, <1 x float> poison, <1 x i32> zeroinitializer
  %v216 = fcmp olt <1 x float> %v215, splat (float 0x3810000000000000)
  %v217 = fmul contract <1 x float> %v215, splat (float 0x4180000000000000)
  %v218 = select <1 x i1> %v216, <1 x float> %v217, <1 x float> %v215
  %v219 = bitcast <1 x float> %v218 to <1 x i32>
  %v220 = sub <1 x i32> %v219, splat (i32 1060439283)
  %v221 = ashr <1 x i32> %v220, splat (i32 23)
  %v222 = shl <1 x i32> %v221, splat (i32 23)
  %v223 = sub <1 x i32> %v219, %v222
  %v224 = bitcast <1 x i32> %v223 to <1 x float>
  %v225 = fsub contract <1 x float> %v224, splat (float 0x3FF0000000000000)
  %v226 = select <1 x i1> %v216, <1 x i32> splat (i32 25), <1 x i32> splat (i32 0)
  %v227 = sub <1 x i32> %v221, %v226
  %v228 = add <1 x i32> %v227, splat (i32 1262485504)
  %v229 = bitcast <1 x i32> %v228 to <1 x float>
  %v230 = fsub contract <1 x float> %v229, splat (float 0x4168000000000000)
  %v231 = fadd contract <1 x float> %v225, splat (float 0x4000000000000000)
  %v232 = fdiv <1 x float> %v225, %v231
  %v233 = fmul contract <1 x float> %v232, %v232
  %v234 = fmul contract <1 x float> %v225, %v225
  %v235 = fmul contract <1 x float> %v234, splat (float 0x3FE0000000000000)
  %v236 = call <1 x float> @llvm.fma.v1f32(<1 x float> splat (float 0x3FCE423200000000), <1 x float> %v233, <1 x float> splat (float 0x3FD2431400000000))
  %v237 = call <1 x float> @llvm.fma.v1f32(<1 x float> %v236, <1 x float> %v233, <1 x float> splat (float 0x3FD999A980000000))
  %v238 = call <1 x float> @llvm.fma.v1f32(<1 x float> %v237, <1 x float> %v233, <1 x float> splat (float 0x3FE5555540000000))
  %v239 = fmul contract <1 x float> %v233, %v238
  %v240 = fadd contract <1 x float> %v235, %v239
  %v241 = fmul contract <1 x float> %v232, %v240
  %v242 = fsub contract <1 x float> %v235, %v241
  %v243 = fsub contract <1 x float> %v225, %v242
  %v244 = call <1 x float> @llvm.fma.v1f32(<1 x float> %v230, <1 x float> splat (float 0x3EB7F7D1C0000000), <1 x float> %v243)
  %v245 = call <1 x float> @llvm.fma.v1f32(<1 x float> %v230, <1 x float> splat (float 0x3FE62E4000000000), <1 x float> %v244)
  %v246 = fcmp oeq <1 x float> %v215, splat (float 0x0000000000000000)
  %v247 = select <1 x i1> %v246, <1 x float> splat (float 0xFFF0000000000000), <1 x float> %v245
  %v248 = fcmp olt <1 x float> %v215, splat (float 0x0000000000000000)
  %v249 = select <1 x i1> %v248, <1 x float> splat (float 0x7FF8000000000000), <1 x float> %v247
  %v250 = fcmp olt <1 x float> %v215, splat (float 0x7FF0000000000000)
  %v251 = select <1 x i1> %v250, <1 x float> %v249, <1 x float> %v215
  %v252 = extractelement <1 x float> %v251, i64 0
  %v253 = fmul contract float %v252, 0xC000000000000000
  %v254 = call float @llvm.sqrt.f32(float %v253)
  %v255 = uitofp i64 %v158 to float
  %v256 = call float @llvm.fma.f32(float %v255, float 0x3E1921FB60000000, float 0x3E0921FB60000000)
  %v257 = call float @llvm.nvvm.sin.approx.f(float %v256)
  %v258 = fmul contract float %v254, %v257
  %v259 = call float @llvm.nvvm.cos.approx.f(float %v256)
  %v260 = fmul contract float %v254, %v259
  %v261 = mul i64 %v15, %v6
  %v262 = mul i64 %v261, 4
  %v263 = mul i64 %v5, 4
  %v264 = add i64 %v262, %v263
  %v265 = add i64 %v264, 0
  %v266 = call float @llvm.fma.f32(float %v209, float %v1, float %v2)
  %v267 = fcmp oeq float %v266, %v3
  %v268 = select i1 %v267, float %v2, float %v266
  %v269 = icmp slt i64 %v265, %n
  br i1 %v269, label %L270, label %L271
L270:
  %v272 = getelementptr float, ptr addrspace(1) %out, i64 %v265
  store float %v268, ptr addrspace(1) %v272, align 4
  br label %L271
L271:
  %v273 = mul i64 %v15, %v6
  %v274 = mul i64 %v273, 4
  %v275 = mul i64 %v5, 4
  %v276 = add i64 %v274, %v275
  %v277 = add i64 %v276, 1
  %v278 = call float @llvm.fma.f32(float %v211, float %v1, float %v2)
  %v279 = fcmp oeq float %v278, %v3
  %v280 = select i1 %v279, float %v2, float %v278
  %v281 = icmp slt i64 %v277, %n
  br i1 %v281, label %L282, label %L283
L282:
  %v284 = getelementptr float, ptr addrspace(1) %out, i64 %v277
  store float %v280, ptr addrspace(1) %v284, align 4
  br label %L283
L283:
  %v285 = mul i64 %v15, %v6
  %v286 = mul i64 %v285, 4
  %v287 = mul i64 %v5, 4
  %v288 = add i64 %v286, %v287
  %v289 = add i64 %v288, 2
  %v290 = call float @llvm.fma.f32(float %v258, float %v1, float %v2)
  %v291 = fcmp oeq float %v290, %v3
  %v292 = select i1 %v291, float %v2, float %v290
  %v293 = icmp slt i64 %v289, %n
  br i1 %v293, label %L294, label %L295
L294:
  %v296 = getelementptr float, ptr addrspace(1) %out, i64 %v289
  store float %v292, ptr addrspace(1) %v296, align 4
  br label %L295
L295:
  %v297 = mul i64 %v15, %v6
  %v298 = mul i64 %v297, 4
  %v299 = mul i64 %v5, 4
  %v300 = add i64 %v298, %v299
  %v301 = add i64 %v300, 3
  %v302 = call float @llvm.fma.f32(float %v260, float %v1, float %v2)
  %v303 = fcmp oeq float %v302, %v3
  %v304 = select i1 %v303, float %v2, float %v302
  %v305 = icmp slt i64 %v301, %n
  br i1 %v305, label %L306, label %L307
L306:
  %v308 = getelementptr float, ptr addrspace(1) %out, i64 %v301
  store float %v304, ptr addrspace(1) %v308, align 4
  br label %L307
L307:
  %v309 = add i64 %v15, 1
  store i64 %v309, ptr %m14
  br label %L11
L13:
  ret void
}
