@values = internal addrspace(3) global [256 x float] undef, align 16
@indices = internal addrspace(3) global [256 x i64] undef, align 16

declare i32 @llvm.nvvm.read.ptx.sreg.tid.x()
declare i32 @llvm.nvvm.read.ptx.sreg.ctaid.x()
declare i32 @llvm.nvvm.read.ptx.sreg.ctaid.y()
declare i32 @llvm.nvvm.read.ptx.sreg.ctaid.z()
declare i32 @llvm.nvvm.read.ptx.sreg.ntid.x()
declare i32 @llvm.nvvm.read.ptx.sreg.nctaid.x()
declare void @llvm.nvvm.barrier.cta.sync.aligned.all(i32)

define ptx_kernel void @extremum_max_half_rows(ptr addrspace(1) %x, ptr addrspace(1) %out, ptr addrspace(1) %places, i64 %count_, i64 %length_, i64 %inner_) "nvvm.maxntid"="256" {
entry:
  %m26 = alloca float, align 64
  %m27 = alloca i64, align 64
  %m32 = alloca i64, align 64
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
  %v15 = icmp slt i64 %v2, %length_
  %v16 = sub i64 %length_, 1
  %v17 = select i1 %v15, i64 %v2, i64 %v16
  %v18 = mul i64 %v17, %inner_
  %v19 = add i64 %v14, %v18
  %v20 = getelementptr i16, ptr addrspace(1) %x, i64 %v19
  %v21 = load i16, ptr addrspace(1) %v20, align 2
  %v22 = insertelement <1 x i16> poison, i16 %v21, i64 0
  %v23 = bitcast <1 x i16> %v22 to <1 x half>
  %v24 = fpext <1 x half> %v23 to <1 x float>
  %v25 = extractelement <1 x float> %v24, i64 0
  store float %v25, ptr %m26
  store i64 %v17, ptr %m27
  %v28 = add i64 %v17, 256
  store i64 %v28, ptr %m32
  br label %L29
L29:
  %v33 = load i64, ptr %m32
  %v34 = icmp slt i64 %v33, %length_
  br i1 %v34, label %L30, label %L31
L30:
  %v35 = mul i64 %v33, %inner_
  %v36 = add i64 %v14, %v35
  %v37 = getelementptr i16, ptr addrspace(1) %x, i64 %v36
  %v38 = load i16, ptr addrspace(1) %v37, align 2
  %v39 = insertelement <1 x i16> poison, i16 %v38, i64 0
  %v40 = bitcast <1 x i16> %v39 to <1 x half>
  %v41 = fpext <1 x half> %v40 to <1 x float>
  %v42 = extractelement <1 x float> %v41, i64 0
  %v43 = load float, ptr %m26
  %v44 = fcmp ogt float %v42, %v43
  %v45 = fcmp uno float %v42, %v42
  %v46 = fcmp oeq float %v43, %v43
  %v47 = and i1 %v45, %v46
  %v48 = or i1 %v44, %v47
  %v49 = load float, ptr %m26
  %v50 = select i1 %v48, float %v42, float %v49
  store float %v50, ptr %m26
  %v51 = load i64, ptr %m27
  %v52 = select i1 %v48, i64 %v33, i64 %v51
  store i64 %v52, ptr %m27
  %v53 = add i64 %v33, 256
  store i64 %v53, ptr %m32
  br label %L29
L31:
  %v54 = load float, ptr %m26
  %v55 = load i64, ptr %m27
  %v56 = getelementptr float, ptr addrspace(3) @values, i64 %v2
  store float %v54, ptr addrspace(3) %v56, align 4
  %v57 = getelementptr i64, ptr addrspace(3) @indices, i64 %v2
  store i64 %v55, ptr addrspace(3) %v57, align 8
  call void @llvm.nvvm.barrier.cta.sync.aligned.all(i32 0)
  %v58 = icmp slt i64 %v2, 128
  br i1 %v58, label %L59, label %L60
L59:
  %v61 = add i64 %v2, 128
  %v62 = getelementptr float, ptr addrspace(3) @values, i64 %v2
  %v63 = load float, ptr addrspace(3) %v62, align 4
  %v64 = getelementptr i64, ptr addrspace(3) @indices, i64 %v2
  %v65 = load i64, ptr addrspace(3) %v64, align 8
  %v66 = getelementptr float, ptr addrspace(3) @values, i64 %v61
  %v67 = load float, ptr addrspace(3) %v66, align 4
  %v68 = getelementptr i64, ptr addrspace(3) @indices, i64 %v61
  %v69 = load i64, ptr addrspace(3) %v68, align 8
  %v70 = icmp slt i64 %v69, %v65
  %v71 = fcmp ogt float %v63, %v67
  %v72 = fcmp uno float %v63, %v63
  %v73 = fcmp oeq float %v67, %v67
  %v74 = and i1 %v72, %v73
  %v75 = or i1 %v71, %v74
  %v76 = fcmp ogt float %v67, %v63
  %v77 = fcmp uno float %v67, %v67
  %v78 = fcmp oeq float %v63, %v63
  %v79 = and i1 %v77, %v78
  %v80 = or i1 %v76, %v79
  %v81 = or i1 %v75, %v80
  %v82 = xor i1 %v81, true
  %v83 = and i1 %v82, %v70
  %v84 = or i1 %v80, %v83
  %v85 = select i1 %v84, float %v67, float %v63
  %v86 = select i1 %v84, i64 %v69, i64 %v65
  %v87 = getelementptr float, ptr addrspace(3) @values, i64 %v2
  store float %v85, ptr addrspace(3) %v87, align 4
  %v88 = getelementptr i64, ptr addrspace(3) @indices, i64 %v2
  store i64 %v86, ptr addrspace(3) %v88, align 8
  br label %L60
L60:
  call void @llvm.nvvm.barrier.cta.sync.aligned.all(i32 0)
  %v89 = icmp slt i64 %v2, 64
  br i1 %v89, label %L90, label %L91
L90:
  %v92 = add i64 %v2, 64
  %v93 = getelementptr float, ptr addrspace(3) @values, i64 %v2
  %v94 = load float, ptr addrspace(3) %v93, align 4
  %v95 = getelementptr i64, ptr addrspace(3) @indices, i64 %v2
  %v96 = load i64, ptr addrspace(3) %v95, align 8
  %v97 = getelementptr float, ptr addrspace(3) @values, i64 %v92
  %v98 = load float, ptr addrspace(3) %v97, align 4
  %v99 = getelementptr i64, ptr addrspace(3) @indices, i64 %v92
  %v100 = load i64, ptr addrspace(3) %v99, align 8
  %v101 = icmp slt i64 %v100, %v96
  %v102 = fcmp ogt float %v94, %v98
  %v103 = fcmp uno float %v94, %v94
  %v104 = fcmp oeq float %v98, %v98
  %v105 = and i1 %v103, %v104
  %v106 = or i1 %v102, %v105
  %v107 = fcmp ogt float %v98, %v94
  %v108 = fcmp uno float %v98, %v98
  %v109 = fcmp oeq float %v94, %v94
  %v110 = and i1 %v108, %v109
  %v111 = or i1 %v107, %v110
  %v112 = or i1 %v106, %v111
  %v113 = xor i1 %v112, true
  %v114 = and i1 %v113, %v101
  %v115 = or i1 %v111, %v114
  %v116 = select i1 %v115, float %v98, float %v94
  %v117 = select i1 %v115, i64 %v100, i64 %v96
  %v118 = getelementptr float, ptr addrspace(3) @values, i64 %v2
  store float %v116, ptr addrspace(3) %v118, align 4
  %v119 = getelementptr i64, ptr addrspace(3) @indices, i64 %v2
  store i64 %v117, ptr addrspace(3) %v119, align 8
  br label %L91
L91:
  call void @llvm.nvvm.barrier.cta.sync.aligned.all(i32 0)
  %v120 = icmp slt i64 %v2, 32
  br i1 %v120, label %L121, label %L122
L121:
  %v123 = add i64 %v2, 32
  %v124 = getelementptr float, ptr addrspace(3) @values, i64 %v2
  %v125 = load float, ptr addrspace(3) %v124, align 4
  %v126 = getelementptr i64, ptr addrspace(3) @indices, i64 %v2
  %v127 = load i64, ptr addrspace(3) %v126, align 8
  %v128 = getelementptr float, ptr addrspace(3) @values, i64 %v123
  %v129 = load float, ptr addrspace(3) %v128, align 4
  %v130 = getelementptr i64, ptr addrspace(3) @indices, i64 %v123
  %v131 = load i64, ptr addrspace(3) %v130, align 8
  %v132 = icmp slt i64 %v131, %v127
  %v133 = fcmp ogt float %v125, %v129
  %v134 = fcmp uno float %v125, %v125
  %v135 = fcmp oeq float %v129, %v129
  %v136 = and i1 %v134, %v135
  %v137 = or i1 %v133, %v136
  %v138 = fcmp ogt float %v129, %v125
  %v139 = fcmp uno float %v129, %v129
  %v140 = fcmp oeq float %v125, %v125
  %v141 = and i1 %v139, %v140
  %v142 = or i1 %v138, %v141
  %v143 = or i1 %v137, %v142
  %v144 = xor i1 %v143, true
  %v145 = and i1 %v144, %v132
  %v146 = or i1 %v142, %v145
  %v147 = select i1 %v146, float %v129, float %v125
  %v148 = select i1 %v146, i64 %v131, i64 %v127
  %v149 = getelementptr float, ptr addrspace(3) @values, i64 %v2
  store float %v147, ptr addrspace(3) %v149, align 4
  %v150 = getelementptr i64, ptr addrspace(3) @indices, i64 %v2
  store i64 %v148, ptr addrspace(3) %v150, align 8
  br label %L122
L122:
  call void @llvm.nvvm.barrier.cta.sync.aligned.all(i32 0)
  %v151 = icmp slt i64 %v2, 16
  br i1 %v151, label %L152, label %L153
L152:
  %v154 = add i64 %v2, 16
  %v155 = getelementptr float, ptr addrspace(3) @values, i64 %v2
  %v156 = load float, ptr addrspace(3) %v155, align 4
  %v157 = getelementptr i64, ptr addrspace(3) @indices, i64 %v2
  %v158 = load i64, ptr addrspace(3) %v157, align 8
  %v159 = getelementptr float, ptr addrspace(3) @values, i64 %v154
  %v160 = load float, ptr addrspace(3) %v159, align 4
  %v161 = getelementptr i64, ptr addrspace(3) @indices, i64 %v154
  %v162 = load i64, ptr addrspace(3) %v161, align 8
  %v163 = icmp slt i64 %v162, %v158
  %v164 = fcmp ogt float %v156, %v160
  %v165 = fcmp uno float %v156, %v156
  %v166 = fcmp oeq float %v160, %v160
  %v167 = and i1 %v165, %v166
  %v168 = or i1 %v164, %v167
  %v169 = fcmp ogt float %v160, %v156
  %v170 = fcmp uno float %v160, %v160
  %v171 = fcmp oeq float %v156, %v156
  %v172 = and i1 %v170, %v171
  %v173 = or i1 %v169, %v172
  %v174 = or i1 %v168, %v173
  %v175 = xor i1 %v174, true
  %v176 = and i1 %v175, %v163
  %v177 = or i1 %v173, %v176
  %v178 = select i1 %v177, float %v160, float %v156
  %v179 = select i1 %v177, i64 %v162, i64 %v158
  %v180 = getelementptr float, ptr addrspace(3) @values, i64 %v2
  store float %v178, ptr addrspace(3) %v180, align 4
  %v181 = getelementptr i64, ptr addrspace(3) @indices, i64 %v2
  store i64 %v179, ptr addrspace(3) %v181, align 8
  br label %L153
L153:
  call void @llvm.nvvm.barrier.cta.sync.aligned.all(i32 0)
  %v182 = icmp slt i64 %v2, 8
  br i1 %v182, label %L183, label %L184
L183:
  %v185 = add i64 %v2, 8
  %v186 = getelementptr float, ptr addrspace(3) @values, i64 %v2
  %v187 = load float, ptr addrspace(3) %v186, align 4
  %v188 = getelementptr i64, ptr addrspace(3) @indices, i64 %v2
  %v189 = load i64, ptr addrspace(3) %v188, align 8
  %v190 = getelementptr float, ptr addrspace(3) @values, i64 %v185
  %v191 = load float, ptr addrspace(3) %v190, align 4
  %v192 = getelementptr i64, ptr addrspace(3) @indices, i64 %v185
  %v193 = load i64, ptr addrspace(3) %v192, align 8
  %v194 = icmp slt i64 %v193, %v189
  %v195 = fcmp ogt float %v187, %v191
  %v196 = fcmp uno float %v187, %v187
  %v197 = fcmp oeq float %v191, %v191
  %v198 = and i1 %v196, %v197
  %v199 = or i1 %v195, %v198
  %v200 = fcmp ogt float %v191, %v187
  %v201 = fcmp uno float %v191, %v191
  %v202 = fcmp oeq float %v187, %v187
  %v203 = and i1 %v201, %v202
  %v204 = or i1 %v200, %v203
  %v205 = or i1 %v199, %v204
  %v206 = xor i1 %v205, true
  %v207 = and i1 %v206, %v194
  %v208 = or i1 %v204, %v207
  %v209 = select i1 %v208, float %v191, float %v187
  %v210 = select i1 %v208, i64 %v193, i64 %v189
  %v211 = getelementptr float, ptr addrspace(3) @values, i64 %v2
  store float %v209, ptr addrspace(3) %v211, align 4
  %v212 = getelementptr i64, ptr addrspace(3) @indices, i64 %v2
  store i64 %v210, ptr addrspace(3) %v212, align 8
  br label %L184
L184:
  call void @llvm.nvvm.barrier.cta.sync.aligned.all(i32 0)
  %v213 = icmp slt i64 %v2, 4
  br i1 %v213, label %L214, label %L215
L214:
  %v216 = add i64 %v2, 4
  %v217 = getelementptr float, ptr addrspace(3) @values, i64 %v2
  %v218 = load float, ptr addrspace(3) %v217, align 4
  %v219 = getelementptr i64, ptr addrspace(3) @indices, i64 %v2
  %v220 = load i64, ptr addrspace(3) %v219, align 8
  %v221 = getelementptr float, ptr addrspace(3) @values, i64 %v216
  %v222 = load float, ptr addrspace(3) %v221, align 4
  %v223 = getelementptr i64, ptr addrspace(3) @indices, i64 %v216
  %v224 = load i64, ptr addrspace(3) %v223, align 8
  %v225 = icmp slt i64 %v224, %v220
  %v226 = fcmp ogt float %v218, %v222
  %v227 = fcmp uno float %v218, %v218
  %v228 = fcmp oeq float %v222, %v222
  %v229 = and i1 %v227, %v228
  %v230 = or i1 %v226, %v229
  %v231 = fcmp ogt float %v222, %v218
  %v232 = fcmp uno float %v222, %v222
  %v233 = fcmp oeq float %v218, %v218
  %v234 = and i1 %v232, %v233
  %v235 = or i1 %v231, %v234
  %v236 = or i1 %v230, %v235
  %v237 = xor i1 %v236, true
  %v238 = and i1 %v237, %v225
  %v239 = or i1 %v235, %v238
  %v240 = select i1 %v239, float %v222, float %v218
  %v241 = select i1 %v239, i64 %v224, i64 %v220
  %v242 = getelementptr float, ptr addrspace(3) @values, i64 %v2
  store float %v240, ptr addrspace(3) %v242, align 4
  %v243 = getelementptr i64, ptr addrspace(3) @indices, i64 %v2
  store i64 %v241, ptr addrspace(3) %v243, align 8
  br label %L215
L215:
  call void @llvm.nvvm.barrier.cta.sync.aligned.all(i32 0)
  %v244 = icmp slt i64 %v2, 2
  br i1 %v244, label %L245, label %L246
L245:
  %v247 = add i64 %v2, 2
  %v248 = getelementptr float, ptr addrspace(3) @values, i64 %v2
  %v249 = load float, ptr addrspace(3) %v248, align 4
  %v250 = getelementptr i64, ptr addrspace(3) @indices, i64 %v2
  %v251 = load i64, ptr addrspace(3) %v250, align 8
  %v252 = getelementptr float, ptr addrspace(3) @values, i64 %v247
  %v253 = load float, ptr addrspace(3) %v252, align 4
  %v254 = getelementptr i64, ptr addrspace(3) @indices, i64 %v247
  %v255 = load i64, ptr addrspace(3) %v254, align 8
  %v256 = icmp slt i64 %v255, %v251
  %v257 = fcmp ogt float %v249, %v253
  %v258 = fcmp uno float %v249, %v249
  %v259 = fcmp oeq float %v253, %v253
  %v260 = and i1 %v258, %v259
  %v261 = or i1 %v257, %v260
  %v262 = fcmp ogt float %v253, %v249
  %v263 = fcmp uno float %v253, %v253
  %v264 = fcmp oeq float %v249, %v249
  %v265 = and i1 %v263, %v264
  %v266 = or i1 %v262, %v265
  %v267 = or i1 %v261, %v266
  %v268 = xor i1 %v267, true
  %v269 = and i1 %v268, %v256
  %v270 = or i1 %v266, %v269
  %v271 = select i1 %v270, float %v253, float %v249
  %v272 = select i1 %v270, i64 %v255, i64 %v251
  %v273 = getelementptr float, ptr addrspace(3) @values, i64 %v2
  store float %v271, ptr addrspace(3) %v273, align 4
  %v274 = getelementptr i64, ptr addrspace(3) @indices, i64 %v2
  store i64 %v272, ptr addrspace(3) %v274, align 8
  br label %L246
L246:
  call void @llvm.nvvm.barrier.cta.sync.aligned.all(i32 0)
  %v275 = icmp slt i64 %v2, 1
  br i1 %v275, label %L276, label %L277
L276:
  %v278 = add i64 %v2, 1
  %v279 = getelementptr float, ptr addrspace(3) @values, i64 %v2
  %v280 = load float, ptr addrspace(3) %v279, align 4
  %v281 = getelementptr i64, ptr addrspace(3) @indices, i64 %v2
  %v282 = load i64, ptr addrspace(3) %v281, align 8
  %v283 = getelementptr float, ptr addrspace(3) @values, i64 %v278
  %v284 = load float, ptr addrspace(3) %v283, align 4
  %v285 = getelementptr i64, ptr addrspace(3) @indices, i64 %v278
  %v286 = load i64, ptr addrspace(3) %v285, align 8
  %v287 = icmp slt i64 %v286, %v282
  %v288 = fcmp ogt float %v280, %v284
  %v289 = fcmp uno float %v280, %v280
  %v290 = fcmp oeq float %v284, %v284
  %v291 = and i1 %v289, %v290
  %v292 = or i1 %v288, %v291
  %v293 = fcmp ogt float %v284, %v280
  %v294 = fcmp uno float %v284, %v284
  %v295 = fcmp oeq float %v280, %v280
  %v296 = and i1 %v294, %v295
  %v297 = or i1 %v293, %v296
  %v298 = or i1 %v292, %v297
  %v299 = xor i1 %v298, true
  %v300 = and i1 %v299, %v287
  %v301 = or i1 %v297, %v300
  %v302 = select i1 %v301, float %v284, float %v280
  %v303 = select i1 %v301, i64 %v286, i64 %v282
  %v304 = getelementptr float, ptr addrspace(3) @values, i64 %v2
  store float %v302, ptr addrspace(3) %v304, align 4
  %v305 = getelementptr i64, ptr addrspace(3) @indices, i64 %v2
  store i64 %v303, ptr addrspace(3) %v305, align 8
  br label %L277
L277:
  %v306 = icmp eq i64 %v2, 0
  br i1 %v306, label %L307, label %L308
L307:
  %v309 = getelementptr float, ptr addrspace(3) @values, i64 %v2
  %v310 = load float, ptr addrspace(3) %v309, align 4
  %v311 = getelementptr i64, ptr addrspace(3) @indices, i64 %v2
  %v312 = load i64, ptr addrspace(3) %v311, align 8
  %v313 = insertelement <1 x float> poison, float %v310, i64 0
  %v314 = fptrunc <1 x float> %v313 to <1 x half>
  %v315 = bitcast <1 x half> %v314 to <1 x i16>
  %v316 = extractelement <1 x i16> %v315, i64 0
  %v317 = getelementptr i16, ptr addrspace(1) %out, i64 %v4
  store i16 %v316, ptr addrspace(1) %v317, align 2
  %v318 = getelementptr i64, ptr addrspace(1) %places, i64 %v4
  store i64 %v312, ptr addrspace(1) %v318, align 8
  br label %L308
L308:
  ret void
}
