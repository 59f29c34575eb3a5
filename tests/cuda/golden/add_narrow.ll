
declare i32 @llvm.nvvm.read.ptx.sreg.tid.x()
declare i32 @llvm.nvvm.read.ptx.sreg.ctaid.x()
declare i32 @llvm.nvvm.read.ptx.sreg.ctaid.y()
declare i32 @llvm.nvvm.read.ptx.sreg.ctaid.z()
declare i32 @llvm.nvvm.read.ptx.sreg.ntid.x()
declare i32 @llvm.nvvm.read.ptx.sreg.nctaid.x()
declare void @llvm.nvvm.barrier.cta.sync.aligned.all(i32)

define ptx_kernel void @pointwise_f61b366d64b7e8e4(ptr addrspace(1) %a0, ptr addrspace(1) %a1, ptr addrspace(1) %out, i64 %n, i64 %d0, i64 %d1, i64 %d2, i64 %s0_0, i64 %s0_1, i64 %s0_2, i64 %s1_0, i64 %s1_1, i64 %s1_2, i64 %s2_0, i64 %s2_1, i64 %s2_2) {
entry:
  %t = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %b = call i32 @llvm.nvvm.read.ptx.sreg.ctaid.x()
  %w = call i32 @llvm.nvvm.read.ptx.sreg.ntid.x()
  %t64 = zext i32 %t to i64
  %b64 = zext i32 %b to i64
  %w64 = zext i32 %w to i64
  %bw = mul i64 %b64, %w64
  %bws = mul i64 %bw, 4
  %id = add i64 %bws, %t64
  %v1 = mul i64 %id, 1
  %v2 = icmp slt i64 %v1, %n
  br i1 %v2, label %work, label %done
work:
  %v3 = add i64 %v1, 256
  %v4 = add i64 %v1, 512
  %v5 = add i64 %v1, 768
  %v6 = icmp slt i64 %v3, %n
  %v7 = icmp slt i64 %v4, %n
  %v8 = icmp slt i64 %v5, %n
  %v9 = select i1 %v6, i64 %v3, i64 %v1
  %v10 = select i1 %v7, i64 %v4, i64 %v1
  %v11 = select i1 %v8, i64 %v5, i64 %v1
  %v12 = trunc i64 %v1 to i32
  %v13 = trunc i64 %d2 to i32
  %v14 = udiv i32 %v12, %v13
  %v15 = mul i32 %v14, %v13
  %v16 = sub i32 %v12, %v15
  %v17 = trunc i64 %d1 to i32
  %v18 = udiv i32 %v14, %v17
  %v19 = mul i32 %v18, %v17
  %v20 = sub i32 %v14, %v19
  %v21 = trunc i64 %s0_0 to i32
  %v22 = mul i32 %v18, %v21
  %v23 = add i32 0, %v22
  %v24 = trunc i64 %s0_1 to i32
  %v25 = mul i32 %v20, %v24
  %v26 = add i32 %v23, %v25
  %v27 = trunc i64 %s0_2 to i32
  %v28 = mul i32 %v16, %v27
  %v29 = add i32 %v26, %v28
  %v30 = trunc i64 %s1_0 to i32
  %v31 = mul i32 %v18, %v30
  %v32 = add i32 0, %v31
  %v33 = trunc i64 %s1_1 to i32
  %v34 = mul i32 %v20, %v33
  %v35 = add i32 %v32, %v34
  %v36 = trunc i64 %s1_2 to i32
  %v37 = mul i32 %v16, %v36
  %v38 = add i32 %v35, %v37
  %v39 = trunc i64 %s2_0 to i32
  %v40 = mul i32 %v18, %v39
  %v41 = add i32 0, %v40
  %v42 = trunc i64 %s2_1 to i32
  %v43 = mul i32 %v20, %v42
  %v44 = add i32 %v41, %v43
  %v45 = trunc i64 %s2_2 to i32
  %v46 = mul i32 %v16, %v45
  %v47 = add i32 %v44, %v46
  %v48 = trunc i64 %v9 to i32
  %v49 = trunc i64 %d2 to i32
  %v50 = udiv i32 %v48, %v49
  %v51 = mul i32 %v50, %v49
  %v52 = sub i32 %v48, %v51
  %v53 = trunc i64 %d1 to i32
  %v54 = udiv i32 %v50, %v53
  %v55 = mul i32 %v54, %v53
  %v56 = sub i32 %v50, %v55
  %v57 = trunc i64 %s0_0 to i32
  %v58 = mul i32 %v54, %v57
  %v59 = add i32 0, %v58
  %v60 = trunc i64 %s0_1 to i32
  %v61 = mul i32 %v56, %v60
  %v62 = add i32 %v59, %v61
  %v63 = trunc i64 %s0_2 to i32
  %v64 = mul i32 %v52, %v63
  %v65 = add i32 %v62, %v64
  %v66 = trunc i64 %s1_0 to i32
  %v67 = mul i32 %v54, %v66
  %v68 = add i32 0, %v67
  %v69 = trunc i64 %s1_1 to i32
  %v70 = mul i32 %v56, %v69
  %v71 = add i32 %v68, %v70
  %v72 = trunc i64 %s1_2 to i32
  %v73 = mul i32 %v52, %v72
  %v74 = add i32 %v71, %v73
  %v75 = trunc i64 %s2_0 to i32
  %v76 = mul i32 %v54, %v75
  %v77 = add i32 0, %v76
  %v78 = trunc i64 %s2_1 to i32
  %v79 = mul i32 %v56, %v78
  %v80 = add i32 %v77, %v79
  %v81 = trunc i64 %s2_2 to i32
  %v82 = mul i32 %v52, %v81
  %v83 = add i32 %v80, %v82
  %v84 = trunc i64 %v10 to i32
  %v85 = trunc i64 %d2 to i32
  %v86 = udiv i32 %v84, %v85
  %v87 = mul i32 %v86, %v85
  %v88 = sub i32 %v84, %v87
  %v89 = trunc i64 %d1 to i32
  %v90 = udiv i32 %v86, %v89
  %v91 = mul i32 %v90, %v89
  %v92 = sub i32 %v86, %v91
  %v93 = trunc i64 %s0_0 to i32
  %v94 = mul i32 %v90, %v93
  %v95 = add i32 0, %v94
  %v96 = trunc i64 %s0_1 to i32
  %v97 = mul i32 %v92, %v96
  %v98 = add i32 %v95, %v97
  %v99 = trunc i64 %s0_2 to i32
  %v100 = mul i32 %v88, %v99
  %v101 = add i32 %v98, %v100
  %v102 = trunc i64 %s1_0 to i32
  %v103 = mul i32 %v90, %v102
  %v104 = add i32 0, %v103
  %v105 = trunc i64 %s1_1 to i32
  %v106 = mul i32 %v92, %v105
  %v107 = add i32 %v104, %v106
  %v108 = trunc i64 %s1_2 to i32
  %v109 = mul i32 %v88, %v108
  %v110 = add i32 %v107, %v109
  %v111 = trunc i64 %s2_0 to i32
  %v112 = mul i32 %v90, %v111
  %v113 = add i32 0, %v112
  %v114 = trunc i64 %s2_1 to i32
  %v115 = mul i32 %v92, %v114
  %v116 = add i32 %v113, %v115
  %v117 = trunc i64 %s2_2 to i32
  %v118 = mul i32 %v88, %v117
  %v119 = add i32 %v116, %v118
  %v120 = trunc i64 %v11 to i32
  %v121 = trunc i64 %d2 to i32
  %v122 = udiv i32 %v120, %v121
  %v123 = mul i32 %v122, %v121
  %v124 = sub i32 %v120, %v123
  %v125 = trunc i64 %d1 to i32
  %v126 = udiv i32 %v122, %v125
  %v127 = mul i32 %v126, %v125
  %v128 = sub i32 %v122, %v127
  %v129 = trunc i64 %s0_0 to i32
  %v130 = mul i32 %v126, %v129
  %v131 = add i32 0, %v130
  %v132 = trunc i64 %s0_1 to i32
  %v133 = mul i32 %v128, %v132
  %v134 = add i32 %v131, %v133
  %v135 = trunc i64 %s0_2 to i32
  %v136 = mul i32 %v124, %v135
  %v137 = add i32 %v134, %v136
  %v138 = trunc i64 %s1_0 to i32
  %v139 = mul i32 %v126, %v138
  %v140 = add i32 0, %v139
  %v141 = trunc i64 %s1_1 to i32
  %v142 = mul i32 %v128, %v141
  %v143 = add i32 %v140, %v142
  %v144 = trunc i64 %s1_2 to i32
  %v145 = mul i32 %v124, %v144
  %v146 = add i32 %v143, %v145
  %v147 = trunc i64 %s2_0 to i32
  %v148 = mul i32 %v126, %v147
  %v149 = add i32 0, %v148
  %v150 = trunc i64 %s2_1 to i32
  %v151 = mul i32 %v128, %v150
  %v152 = add i32 %v149, %v151
  %v153 = trunc i64 %s2_2 to i32
  %v154 = mul i32 %v124, %v153
  %v155 = add i32 %v152, %v154
  %v156 = getelementptr float, ptr addrspace(1) %a0, i32 %v29
  %v157 = load float, ptr addrspace(1) %v156, align 4
  %v158 = insertelement <1 x float> poison, float %v157, i64 0
  %v159 = shufflevector <1 x float> %v158, <1 x float> poison, <1 x i32> zeroinitializer
  %v160 = getelementptr float, ptr addrspace(1) %a1, i32 %v38
  %v161 = load float, ptr addrspace(1) %v160, align 4
  %v162 = insertelement <1 x float> poison, float %v161, i64 0
  %v163 = shufflevector <1 x float> %v162, <1 x float> poison, <1 x i32> zeroinitializer
  %v164 = getelementptr float, ptr addrspace(1) %a0, i32 %v65
  %v165 = load float, ptr addrspace(1) %v164, align 4
  %v166 = insertelement <1 x float> poison, float %v165, i64 0
  %v167 = shufflevector <1 x float> %v166, <1 x float> poison, <1 x i32> zeroinitializer
  %v168 = getelementptr float, ptr addrspace(1) %a1, i32 %v74
  %v169 = load float, ptr addrspace(1) %v168, align 4
  %v170 = insertelement <1 x float> poison, float %v169, i64 0
  %v171 = shufflevector <1 x float> %v170, <1 x float> poison, <1 x i32> zeroinitializer
  %v172 = getelementptr float, ptr addrspace(1) %a0, i32 %v101
  %v173 = load float, ptr addrspace(1) %v172, align 4
  %v174 = insertelement <1 x float> poison, float %v173, i64 0
  %v175 = shufflevector <1 x float> %v174, <1 x float> poison, <1 x i32> zeroinitializer
  %v176 = getelementptr float, ptr addrspace(1) %a1, i32 %v110
  %v177 = load float, ptr addrspace(1) %v176, align 4
  %v178 = insertelement <1 x float> poison, float %v177, i64 0
  %v179 = shufflevector <1 x float> %v178, <1 x float> poison, <1 x i32> zeroinitializer
  %v180 = getelementptr float, ptr addrspace(1) %a0, i32 %v137
  %v181 = load float, ptr addrspace(1) %v180, align 4
  %v182 = insertelement <1 x float> poison, float %v181, i64 0
  %v183 = shufflevector <1 x float> %v182, <1 x float> poison, <1 x i32> zeroinitializer
  %v184 = getelementptr float, ptr addrspace(1) %a1, i32 %v146
  %v185 = load float, ptr addrspace(1) %v184, align 4
  %v186 = insertelement <1 x float> poison, float %v185, i64 0
  %v187 = shufflevector <1 x float> %v186, <1 x float> poison, <1 x i32> zeroinitializer
  %v188 = fadd <1 x float> %v159, %v163
  %v189 = fadd <1 x float> %v167, %v171
  %v190 = fadd <1 x float> %v175, %v179
  %v191 = fadd <1 x float> %v183, %v187
  %v192 = extractelement <1 x float> %v188, i64 0
  %v193 = getelementptr float, ptr addrspace(1) %out, i32 %v47
  store float %v192, ptr addrspace(1) %v193, align 4
  br i1 %v6, label %L194, label %L195
L194:
  %v196 = extractelement <1 x float> %v189, i64 0
  %v197 = getelementptr float, ptr addrspace(1) %out, i32 %v83
  store float %v196, ptr addrspace(1) %v197, align 4
  br label %L195
L195:
  br i1 %v7, label %L198, label %L199
L198:
  %v200 = extractelement <1 x float> %v190, i64 0
  %v201 = getelementptr float, ptr addrspace(1) %out, i32 %v119
  store float %v200, ptr addrspace(1) %v201, align 4
  br label %L199
L199:
  br i1 %v8, label %L202, label %L203
L202:
  %v204 = extractelement <1 x float> %v191, i64 0
  %v205 = getelementptr float, ptr addrspace(1) %out, i32 %v155
  store float %v204, ptr addrspace(1) %v205, align 4
  br label %L203
L203:
  br label %done
done:
  ret void
}
