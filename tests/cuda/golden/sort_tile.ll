@tile_keys = internal addrspace(3) global [1024 x i64] undef, align 16
@tile_places = internal addrspace(3) global [1024 x i64] undef, align 16

declare i32 @llvm.nvvm.read.ptx.sreg.tid.x()
declare i32 @llvm.nvvm.read.ptx.sreg.ctaid.x()
declare i32 @llvm.nvvm.read.ptx.sreg.ctaid.y()
declare i32 @llvm.nvvm.read.ptx.sreg.ctaid.z()
declare i32 @llvm.nvvm.read.ptx.sreg.ntid.x()
declare i32 @llvm.nvvm.read.ptx.sreg.nctaid.x()
declare void @llvm.nvvm.barrier.cta.sync.aligned.all(i32)

define ptx_kernel void @sort_tiles_float_down(ptr addrspace(1) %x, ptr addrspace(1) %keys, ptr addrspace(1) %places, i64 %length_, i64 %tiles_, i64 %stages_) "nvvm.maxntid"="256" {
entry:
  %m102 = alloca i64, align 64
  %m108 = alloca i64, align 64
  %v1 = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %v2 = sext i32 %v1 to i64
  %v3 = call i32 @llvm.nvvm.read.ptx.sreg.ctaid.x()
  %v4 = sext i32 %v3 to i64
  %v5 = call i32 @llvm.nvvm.read.ptx.sreg.ctaid.y()
  %v6 = sext i32 %v5 to i64
  %v7 = call i32 @llvm.nvvm.read.ptx.sreg.ctaid.z()
  %v8 = sext i32 %v7 to i64
  %v9 = udiv i64 %v4, %tiles_
  %v10 = mul i64 %v9, %tiles_
  %v11 = sub i64 %v4, %v10
  %v12 = mul i64 %v11, 1024
  %v13 = mul i64 %v9, %length_
  %v14 = add i64 %v2, 0
  %v15 = add i64 %v12, %v14
  %v16 = icmp slt i64 %v15, %length_
  %v17 = sub i64 %length_, 1
  %v18 = select i1 %v16, i64 %v15, i64 %v17
  %v19 = add i64 %v13, %v18
  %v20 = getelementptr float, ptr addrspace(1) %x, i64 %v19
  %v21 = load float, ptr addrspace(1) %v20, align 4
  %v22 = bitcast float %v21 to i32
  %v23 = ashr i32 %v22, 31
  %v24 = and i32 %v23, 2147483647
  %v25 = xor i32 %v22, %v24
  %v26 = fcmp oeq float %v21, 0x0000000000000000
  %v27 = select i1 %v26, i32 0, i32 %v25
  %v28 = fcmp uno float %v21, %v21
  %v29 = select i1 %v28, i32 2147483647, i32 %v27
  %v30 = sext i32 %v29 to i64
  %v31 = xor i64 %v30, -1
  %v32 = select i1 %v16, i64 %v31, i64 9223372036854775807
  %v33 = getelementptr i64, ptr addrspace(3) @tile_keys, i64 %v14
  store i64 %v32, ptr addrspace(3) %v33, align 8
  %v34 = getelementptr i64, ptr addrspace(3) @tile_places, i64 %v14
  store i64 %v15, ptr addrspace(3) %v34, align 8
  %v35 = add i64 %v2, 256
  %v36 = add i64 %v12, %v35
  %v37 = icmp slt i64 %v36, %length_
  %v38 = sub i64 %length_, 1
  %v39 = select i1 %v37, i64 %v36, i64 %v38
  %v40 = add i64 %v13, %v39
  %v41 = getelementptr float, ptr addrspace(1) %x, i64 %v40
  %v42 = load float, ptr addrspace(1) %v41, align 4
  %v43 = bitcast float %v42 to i32
  %v44 = ashr i32 %v43, 31
  %v45 = and i32 %v44, 2147483647
  %v46 = xor i32 %v43, %v45
  %v47 = fcmp oeq float %v42, 0x0000000000000000
  %v48 = select i1 %v47, i32 0, i32 %v46
  %v49 = fcmp uno float %v42, %v42
  %v50 = select i1 %v49, i32 2147483647, i32 %v48
  %v51 = sext i32 %v50 to i64
  %v52 = xor i64 %v51, -1
  %v53 = select i1 %v37, i64 %v52, i64 9223372036854775807
  %v54 = getelementptr i64, ptr addrspace(3) @tile_keys, i64 %v35
  store i64 %v53, ptr addrspace(3) %v54, align 8
  %v55 = getelementptr i64, ptr addrspace(3) @tile_places, i64 %v35
  store i64 %v36, ptr addrspace(3) %v55, align 8
  %v56 = add i64 %v2, 512
  %v57 = add i64 %v12, %v56
  %v58 = icmp slt i64 %v57, %length_
  %v59 = sub i64 %length_, 1
  %v60 = select i1 %v58, i64 %v57, i64 %v59
  %v61 = add i64 %v13, %v60
  %v62 = getelementptr float, ptr addrspace(1) %x, i64 %v61
  %v63 = load float, ptr addrspace(1) %v62, align 4
  %v64 = bitcast float %v63 to i32
  %v65 = ashr i32 %v64, 31
  %v66 = and i32 %v65, 2147483647
  %v67 = xor i32 %v64, %v66
  %v68 = fcmp oeq float %v63, 0x0000000000000000
  %v69 = select i1 %v68, i32 0, i32 %v67
  %v70 = fcmp uno float %v63, %v63
  %v71 = select i1 %v70, i32 2147483647, i32 %v69
  %v72 = sext i32 %v71 to i64
  %v73 = xor i64 %v72, -1
  %v74 = select i1 %v58, i64 %v73, i64 9223372036854775807
  %v75 = getelementptr i64, ptr addrspace(3) @tile_keys, i64 %v56
  store i64 %v74, ptr addrspace(3) %v75, align 8
  %v76 = getelementptr i64, ptr addrspace(3) @tile_places, i64 %v56
  store i64 %v57, ptr addrspace(3) %v76, align 8
  %v77 = add i64 %v2, 768
  %v78 = add i64 %v12, %v77
  %v79 = icmp slt i64 %v78, %length_
  %v80 = sub i64 %length_, 1
  %v81 = select i1 %v79, i64 %v78, i64 %v80
  %v82 = add i64 %v13, %v81
  %v83 = getelementptr float, ptr addrspace(1) %x, i64 %v82
  %v84 = load float, ptr addrspace(1) %v83, align 4
  %v85 = bitcast float %v84 to i32
  %v86 = ashr i32 %v85, 31
  %v87 = and i32 %v86, 2147483647
  %v88 = xor i32 %v85, %v87
  %v89 = fcmp oeq float %v84, 0x0000000000000000
  %v90 = select i1 %v89, i32 0, i32 %v88
  %v91 = fcmp uno float %v84, %v84
  %v92 = select i1 %v91, i32 2147483647, i32 %v90
  %v93 = sext i32 %v92 to i64
  %v94 = xor i64 %v93, -1
  %v95 = select i1 %v79, i64 %v94, i64 9223372036854775807
  %v96 = getelementptr i64, ptr addrspace(3) @tile_keys, i64 %v77
  store i64 %v95, ptr addrspace(3) %v96, align 8
  %v97 = getelementptr i64, ptr addrspace(3) @tile_places, i64 %v77
  store i64 %v78, ptr addrspace(3) %v97, align 8
  %v98 = add i64 %stages_, 1
  store i64 1, ptr %m102
  br label %L99
L99:
  %v103 = load i64, ptr %m102
  %v104 = icmp slt i64 %v103, %v98
  br i1 %v104, label %L100, label %L101
L100:
  store i64 0, ptr %m108
  br label %L105
L105:
  %v109 = load i64, ptr %m108
  %v110 = icmp slt i64 %v109, %v103
  br i1 %v110, label %L106, label %L107
L106:
  call void @llvm.nvvm.barrier.cta.sync.aligned.all(i32 0)
  %v111 = add i64 %v2, 0
  %v112 = shl i64 1, %v103
  %v113 = sub i64 %v103, 1
  %v114 = sub i64 %v113, %v109
  %v115 = shl i64 1, %v114
  %v116 = sub i64 0, %v115
  %v117 = and i64 %v111, %v116
  %v118 = shl i64 %v117, 1
  %v119 = sub i64 %v115, 1
  %v120 = and i64 %v111, %v119
  %v121 = add i64 %v118, %v120
  %v122 = add i64 %v121, %v115
  %v123 = getelementptr i64, ptr addrspace(3) @tile_keys, i64 %v121
  %v124 = load i64, ptr addrspace(3) %v123, align 8
  %v125 = getelementptr i64, ptr addrspace(3) @tile_places, i64 %v121
  %v126 = load i64, ptr addrspace(3) %v125, align 8
  %v127 = getelementptr i64, ptr addrspace(3) @tile_keys, i64 %v122
  %v128 = load i64, ptr addrspace(3) %v127, align 8
  %v129 = getelementptr i64, ptr addrspace(3) @tile_places, i64 %v122
  %v130 = load i64, ptr addrspace(3) %v129, align 8
  %v131 = icmp sgt i64 %v124, %v128
  %v132 = icmp eq i64 %v124, %v128
  %v133 = icmp sgt i64 %v126, %v130
  %v134 = and i1 %v132, %v133
  %v135 = or i1 %v131, %v134
  %v136 = and i64 %v121, %v112
  %v137 = icmp eq i64 %v136, 0
  %v138 = icmp eq i1 %v135, %v137
  br i1 %v138, label %L139, label %L140
L139:
  %v141 = getelementptr i64, ptr addrspace(3) @tile_keys, i64 %v121
  store i64 %v128, ptr addrspace(3) %v141, align 8
  %v142 = getelementptr i64, ptr addrspace(3) @tile_keys, i64 %v122
  store i64 %v124, ptr addrspace(3) %v142, align 8
  %v143 = getelementptr i64, ptr addrspace(3) @tile_places, i64 %v121
  store i64 %v130, ptr addrspace(3) %v143, align 8
  %v144 = getelementptr i64, ptr addrspace(3) @tile_places, i64 %v122
  store i64 %v126, ptr addrspace(3) %v144, align 8
  br label %L140
L140:
  %v145 = add i64 %v2, 256
  %v146 = shl i64 1, %v103
  %v147 = sub i64 %v103, 1
  %v148 = sub i64 %v147, %v109
  %v149 = shl i64 1, %v148
  %v150 = sub i64 0, %v149
  %v151 = and i64 %v145, %v150
  %v152 = shl i64 %v151, 1
  %v153 = sub i64 %v149, 1
  %v154 = and i64 %v145, %v153
  %v155 = add i64 %v152, %v154
  %v156 = add i64 %v155, %v149
  %v157 = getelementptr i64, ptr addrspace(3) @tile_keys, i64 %v155
  %v158 = load i64, ptr addrspace(3) %v157, align 8
  %v159 = getelementptr i64, ptr addrspace(3) @tile_places, i64 %v155
  %v160 = load i64, ptr addrspace(3) %v159, align 8
  %v161 = getelementptr i64, ptr addrspace(3) @tile_keys, i64 %v156
  %v162 = load i64, ptr addrspace(3) %v161, align 8
  %v163 = getelementptr i64, ptr addrspace(3) @tile_places, i64 %v156
  %v164 = load i64, ptr addrspace(3) %v163, align 8
  %v165 = icmp sgt i64 %v158, %v162
  %v166 = icmp eq i64 %v158, %v162
  %v167 = icmp sgt i64 %v160, %v164
  %v168 = and i1 %v166, %v167
  %v169 = or i1 %v165, %v168
  %v170 = and i64 %v155, %v146
  %v171 = icmp eq i64 %v170, 0
  %v172 = icmp eq i1 %v169, %v171
  br i1 %v172, label %L173, label %L174
L173:
  %v175 = getelementptr i64, ptr addrspace(3) @tile_keys, i64 %v155
  store i64 %v162, ptr addrspace(3) %v175, align 8
  %v176 = getelementptr i64, ptr addrspace(3) @tile_keys, i64 %v156
  store i64 %v158, ptr addrspace(3) %v176, align 8
  %v177 = getelementptr i64, ptr addrspace(3) @tile_places, i64 %v155
  store i64 %v164, ptr addrspace(3) %v177, align 8
  %v178 = getelementptr i64, ptr addrspace(3) @tile_places, i64 %v156
  store i64 %v160, ptr addrspace(3) %v178, align 8
  br label %L174
L174:
  %v179 = add i64 %v109, 1
  store i64 %v179, ptr %m108
  br label %L105
L107:
  %v180 = add i64 %v103, 1
  store i64 %v180, ptr %m102
  br label %L99
L101:
  call void @llvm.nvvm.barrier.cta.sync.aligned.all(i32 0)
  %v181 = add i64 %v2, 0
  %v182 = add i64 %v12, %v181
  %v183 = icmp slt i64 %v182, %length_
  br i1 %v183, label %L184, label %L185
L184:
  %v186 = getelementptr i64, ptr addrspace(3) @tile_keys, i64 %v181
  %v187 = load i64, ptr addrspace(3) %v186, align 8
  %v188 = add i64 %v13, %v12
  %v189 = add i64 %v188, %v181
  %v190 = getelementptr i64, ptr addrspace(1) %keys, i64 %v189
  store i64 %v187, ptr addrspace(1) %v190, align 8
  %v191 = getelementptr i64, ptr addrspace(3) @tile_places, i64 %v181
  %v192 = load i64, ptr addrspace(3) %v191, align 8
  %v193 = add i64 %v13, %v12
  %v194 = add i64 %v193, %v181
  %v195 = getelementptr i64, ptr addrspace(1) %places, i64 %v194
  store i64 %v192, ptr addrspace(1) %v195, align 8
  br label %L185
L185:
  %v196 = add i64 %v2, 256
  %v197 = add i64 %v12, %v196
  %v198 = icmp slt i64 %v197, %length_
  br i1 %v198, label %L199, label %L200
L199:
  %v201 = getelementptr i64, ptr addrspace(3) @tile_keys, i64 %v196
  %v202 = load i64, ptr addrspace(3) %v201, align 8
  %v203 = add i64 %v13, %v12
  %v204 = add i64 %v203, %v196
  %v205 = getelementptr i64, ptr addrspace(1) %keys, i64 %v204
  store i64 %v202, ptr addrspace(1) %v205, align 8
  %v206 = getelementptr i64, ptr addrspace(3) @tile_places, i64 %v196
  %v207 = load i64, ptr addrspace(3) %v206, align 8
  %v208 = add i64 %v13, %v12
  %v209 = add i64 %v208, %v196
  %v210 = getelementptr i64, ptr addrspace(1) %places, i64 %v209
  store i64 %v207, ptr addrspace(1) %v210, align 8
  br label %L200
L200:
  %v211 = add i64 %v2, 512
  %v212 = add i64 %v12, %v211
  %v213 = icmp slt i64 %v212, %length_
  br i1 %v213, label %L214, label %L215
L214:
  %v216 = getelementptr i64, ptr addrspace(3) @tile_keys, i64 %v211
  %v217 = load i64, ptr addrspace(3) %v216, align 8
  %v218 = add i64 %v13, %v12
  %v219 = add i64 %v218, %v211
  %v220 = getelementptr i64, ptr addrspace(1) %keys, i64 %v219
  store i64 %v217, ptr addrspace(1) %v220, align 8
  %v221 = getelementptr i64, ptr addrspace(3) @tile_places, i64 %v211
  %v222 = load i64, ptr addrspace(3) %v221, align 8
  %v223 = add i64 %v13, %v12
  %v224 = add i64 %v223, %v211
  %v225 = getelementptr i64, ptr addrspace(1) %places, i64 %v224
  store i64 %v222, ptr addrspace(1) %v225, align 8
  br label %L215
L215:
  %v226 = add i64 %v2, 768
  %v227 = add i64 %v12, %v226
  %v228 = icmp slt i64 %v227, %length_
  br i1 %v228, label %L229, label %L230
L229:
  %v231 = getelementptr i64, ptr addrspace(3) @tile_keys, i64 %v226
  %v232 = load i64, ptr addrspace(3) %v231, align 8
  %v233 = add i64 %v13, %v12
  %v234 = add i64 %v233, %v226
  %v235 = getelementptr i64, ptr addrspace(1) %keys, i64 %v234
  store i64 %v232, ptr addrspace(1) %v235, align 8
  %v236 = getelementptr i64, ptr addrspace(3) @tile_places, i64 %v226
  %v237 = load i64, ptr addrspace(3) %v236, align 8
  %v238 = add i64 %v13, %v12
  %v239 = add i64 %v238, %v226
  %v240 = getelementptr i64, ptr addrspace(1) %places, i64 %v239
  store i64 %v237, ptr addrspace(1) %v240, align 8
  br label %L230
L230:
  ret void
}
