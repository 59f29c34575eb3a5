@shared = internal addrspace(3) global [256 x double] undef, align 16

declare i32 @llvm.nvvm.read.ptx.sreg.tid.x()
declare i32 @llvm.nvvm.read.ptx.sreg.ctaid.x()
declare i32 @llvm.nvvm.read.ptx.sreg.ctaid.y()
declare i32 @llvm.nvvm.read.ptx.sreg.ctaid.z()
declare i32 @llvm.nvvm.read.ptx.sreg.ntid.x()
declare i32 @llvm.nvvm.read.ptx.sreg.nctaid.x()
declare void @llvm.nvvm.barrier.cta.sync.aligned.all(i32)

define ptx_kernel void @reduce_max_double_1_2_columns(ptr addrspace(1) %a, ptr addrspace(1) %out, i64 %results, i64 %count, i64 %parts, i64 %od0, i64 %os0, i64 %id0, i64 %id1, i64 %is0, i64 %is1) {
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
  %m182 = alloca i64, align 64
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
  store i64 %v20, ptr %m182
  br label %L179
L179:
  %v183 = load i64, ptr %m182
  %v184 = icmp slt i64 %v183, %v18
  br i1 %v184, label %L180, label %L181
L180:
  %v185 = load double, ptr %m8
  %v186 = mul i64 %v183, %v10
  %v187 = add i64 %v12, %v186
  %v188 = sdiv i64 %v187, %id1
  %v189 = mul i64 %v188, %id1
  %v190 = sub i64 %v187, %v189
  %v191 = mul i64 %v190, %is1
  %v192 = add i64 0, %v191
  %v193 = mul i64 %v188, %is0
  %v194 = add i64 %v192, %v193
  %v195 = add i64 %v7, %v194
  %v196 = getelementptr double, ptr addrspace(1) %a, i64 %v195
  %v197 = load double, ptr addrspace(1) %v196, align 8
  %v198 = fcmp ule double %v185, %v197
  %v199 = select i1 %v198, double %v197, double %v185
  %v200 = fcmp uno double %v185, %v185
  %v201 = select i1 %v200, double %v185, double %v199
  store double %v201, ptr %m8
  %v202 = add i64 %v183, 1
  store i64 %v202, ptr %m182
  br label %L179
L181:
  %v203 = load double, ptr %m8
  %v204 = load double, ptr %m21
  %v205 = fcmp ule double %v203, %v204
  %v206 = select i1 %v205, double %v204, double %v203
  %v207 = fcmp uno double %v203, %v203
  %v208 = select i1 %v207, double %v203, double %v206
  store double %v208, ptr %m8
  %v209 = load double, ptr %m8
  %v210 = load double, ptr %m22
  %v211 = fcmp ule double %v209, %v210
  %v212 = select i1 %v211, double %v210, double %v209
  %v213 = fcmp uno double %v209, %v209
  %v214 = select i1 %v213, double %v209, double %v212
  store double %v214, ptr %m8
  %v215 = load double, ptr %m8
  %v216 = load double, ptr %m23
  %v217 = fcmp ule double %v215, %v216
  %v218 = select i1 %v217, double %v216, double %v215
  %v219 = fcmp uno double %v215, %v215
  %v220 = select i1 %v219, double %v215, double %v218
  store double %v220, ptr %m8
  %v221 = load double, ptr %m8
  %v222 = load double, ptr %m24
  %v223 = fcmp ule double %v221, %v222
  %v224 = select i1 %v223, double %v222, double %v221
  %v225 = fcmp uno double %v221, %v221
  %v226 = select i1 %v225, double %v221, double %v224
  store double %v226, ptr %m8
  %v227 = load double, ptr %m8
  %v228 = load double, ptr %m25
  %v229 = fcmp ule double %v227, %v228
  %v230 = select i1 %v229, double %v228, double %v227
  %v231 = fcmp uno double %v227, %v227
  %v232 = select i1 %v231, double %v227, double %v230
  store double %v232, ptr %m8
  %v233 = load double, ptr %m8
  %v234 = load double, ptr %m26
  %v235 = fcmp ule double %v233, %v234
  %v236 = select i1 %v235, double %v234, double %v233
  %v237 = fcmp uno double %v233, %v233
  %v238 = select i1 %v237, double %v233, double %v236
  store double %v238, ptr %m8
  %v239 = load double, ptr %m8
  %v240 = load double, ptr %m27
  %v241 = fcmp ule double %v239, %v240
  %v242 = select i1 %v241, double %v240, double %v239
  %v243 = fcmp uno double %v239, %v239
  %v244 = select i1 %v243, double %v239, double %v242
  store double %v244, ptr %m8
  %v245 = getelementptr double, ptr addrspace(3) @shared, i64 %t
  %v246 = load double, ptr %m8
  store double %v246, ptr addrspace(3) %v245, align 8
  call void @llvm.nvvm.barrier.cta.sync.aligned.all(i32 0)
  %v247 = icmp slt i64 %t, 128
  br i1 %v247, label %L248, label %L249
L248:
  %v250 = add i64 %t, 128
  %v251 = getelementptr double, ptr addrspace(3) @shared, i64 %v250
  %v252 = load double, ptr addrspace(3) %v245, align 8
  %v253 = load double, ptr addrspace(3) %v251, align 8
  %v254 = fcmp ule double %v252, %v253
  %v255 = select i1 %v254, double %v253, double %v252
  %v256 = fcmp uno double %v252, %v252
  %v257 = select i1 %v256, double %v252, double %v255
  store double %v257, ptr addrspace(3) %v245, align 8
  br label %L249
L249:
  call void @llvm.nvvm.barrier.cta.sync.aligned.all(i32 0)
  %v258 = icmp slt i64 %t, 64
  br i1 %v258, label %L259, label %L260
L259:
  %v261 = add i64 %t, 64
  %v262 = getelementptr double, ptr addrspace(3) @shared, i64 %v261
  %v263 = load double, ptr addrspace(3) %v245, align 8
  %v264 = load double, ptr addrspace(3) %v262, align 8
  %v265 = fcmp ule double %v263, %v264
  %v266 = select i1 %v265, double %v264, double %v263
  %v267 = fcmp uno double %v263, %v263
  %v268 = select i1 %v267, double %v263, double %v266
  store double %v268, ptr addrspace(3) %v245, align 8
  br label %L260
L260:
  call void @llvm.nvvm.barrier.cta.sync.aligned.all(i32 0)
  %v269 = icmp slt i64 %t, 32
  br i1 %v269, label %L270, label %L271
L270:
  %v272 = add i64 %t, 32
  %v273 = getelementptr double, ptr addrspace(3) @shared, i64 %v272
  %v274 = load double, ptr addrspace(3) %v245, align 8
  %v275 = load double, ptr addrspace(3) %v273, align 8
  %v276 = fcmp ule double %v274, %v275
  %v277 = select i1 %v276, double %v275, double %v274
  %v278 = fcmp uno double %v274, %v274
  %v279 = select i1 %v278, double %v274, double %v277
  store double %v279, ptr addrspace(3) %v245, align 8
  br label %L271
L271:
  %v280 = icmp slt i64 %t, 32
  %v281 = and i1 %v280, %v5
  br i1 %v281, label %L282, label %L283
L282:
  %v284 = load double, ptr addrspace(3) %v245, align 8
  %v285 = mul i64 %p, %results
  %v286 = add i64 %v285, %v4
  %v287 = getelementptr double, ptr addrspace(1) %out, i64 %v286
  store double %v284, ptr addrspace(1) %v287, align 8
  br label %L283
L283:
  ret void
}
