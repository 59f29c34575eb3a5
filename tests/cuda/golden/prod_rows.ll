@shared = internal addrspace(3) global [256 x double] undef, align 16

declare i32 @llvm.nvvm.read.ptx.sreg.tid.x()
declare i32 @llvm.nvvm.read.ptx.sreg.ctaid.x()
declare i32 @llvm.nvvm.read.ptx.sreg.ctaid.y()
declare i32 @llvm.nvvm.read.ptx.sreg.ctaid.z()
declare i32 @llvm.nvvm.read.ptx.sreg.ntid.x()
declare i32 @llvm.nvvm.read.ptx.sreg.nctaid.x()
declare void @llvm.nvvm.barrier.cta.sync.aligned.all(i32)

define ptx_kernel void @reduce_prod_double_1_1_rows(ptr addrspace(1) %a, ptr addrspace(1) %out, i64 %results, i64 %count, i64 %parts, i64 %od0, i64 %os0, i64 %id0, i64 %is0) {
entry:
  %m4 = alloca double, align 64
  %m17 = alloca double, align 64
  %m18 = alloca double, align 64
  %m19 = alloca double, align 64
  %m20 = alloca double, align 64
  %m21 = alloca double, align 64
  %m22 = alloca double, align 64
  %m23 = alloca double, align 64
  %m27 = alloca i64, align 64
  %m114 = alloca i64, align 64
  %t32 = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %t = zext i32 %t32 to i64
  %b32 = call i32 @llvm.nvvm.read.ptx.sreg.ctaid.x()
  %b = zext i32 %b32 to i64
  %p32 = call i32 @llvm.nvvm.read.ptx.sreg.ctaid.y()
  %p = zext i32 %p32 to i64
  %v1 = icmp slt i64 %b, %results
  %v2 = mul i64 %b, %os0
  %v3 = add i64 0, %v2
  store double 0x3FF0000000000000, ptr %m4
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
  store double 0x3FF0000000000000, ptr %m17
  store double 0x3FF0000000000000, ptr %m18
  store double 0x3FF0000000000000, ptr %m19
  store double 0x3FF0000000000000, ptr %m20
  store double 0x3FF0000000000000, ptr %m21
  store double 0x3FF0000000000000, ptr %m22
  store double 0x3FF0000000000000, ptr %m23
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
  %v36 = getelementptr double, ptr addrspace(1) %a, i64 %v35
  %v37 = load double, ptr addrspace(1) %v36, align 8
  %v38 = add i64 %v28, 1
  %v39 = mul i64 %v38, %v6
  %v40 = add i64 %v8, %v39
  %v41 = mul i64 %v40, %is0
  %v42 = add i64 0, %v41
  %v43 = add i64 %v3, %v42
  %v44 = getelementptr double, ptr addrspace(1) %a, i64 %v43
  %v45 = load double, ptr addrspace(1) %v44, align 8
  %v46 = add i64 %v28, 2
  %v47 = mul i64 %v46, %v6
  %v48 = add i64 %v8, %v47
  %v49 = mul i64 %v48, %is0
  %v50 = add i64 0, %v49
  %v51 = add i64 %v3, %v50
  %v52 = getelementptr double, ptr addrspace(1) %a, i64 %v51
  %v53 = load double, ptr addrspace(1) %v52, align 8
  %v54 = add i64 %v28, 3
  %v55 = mul i64 %v54, %v6
  %v56 = add i64 %v8, %v55
  %v57 = mul i64 %v56, %is0
  %v58 = add i64 0, %v57
  %v59 = add i64 %v3, %v58
  %v60 = getelementptr double, ptr addrspace(1) %a, i64 %v59
  %v61 = load double, ptr addrspace(1) %v60, align 8
  %v62 = add i64 %v28, 4
  %v63 = mul i64 %v62, %v6
  %v64 = add i64 %v8, %v63
  %v65 = mul i64 %v64, %is0
  %v66 = add i64 0, %v65
  %v67 = add i64 %v3, %v66
  %v68 = getelementptr double, ptr addrspace(1) %a, i64 %v67
  %v69 = load double, ptr addrspace(1) %v68, align 8
  %v70 = add i64 %v28, 5
  %v71 = mul i64 %v70, %v6
  %v72 = add i64 %v8, %v71
  %v73 = mul i64 %v72, %is0
  %v74 = add i64 0, %v73
  %v75 = add i64 %v3, %v74
  %v76 = getelementptr double, ptr addrspace(1) %a, i64 %v75
  %v77 = load double, ptr addrspace(1) %v76, align 8
  %v78 = add i64 %v28, 6
  %v79 = mul i64 %v78, %v6
  %v80 = add i64 %v8, %v79
  %v81 = mul i64 %v80, %is0
  %v82 = add i64 0, %v81
  %v83 = add i64 %v3, %v82
  %v84 = getelementptr double, ptr addrspace(1) %a, i64 %v83
  %v85 = load double, ptr addrspace(1) %v84, align 8
  %v86 = add i64 %v28, 7
  %v87 = mul i64 %v86, %v6
  %v88 = add i64 %v8, %v87
  %v89 = mul i64 %v88, %is0
  %v90 = add i64 0, %v89
  %v91 = add i64 %v3, %v90
  %v92 = getelementptr double, ptr addrspace(1) %a, i64 %v91
  %v93 = load double, ptr addrspace(1) %v92, align 8
  %v94 = load double, ptr %m4
  %v95 = fmul double %v94, %v37
  store double %v95, ptr %m4
  %v96 = load double, ptr %m17
  %v97 = fmul double %v96, %v45
  store double %v97, ptr %m17
  %v98 = load double, ptr %m18
  %v99 = fmul double %v98, %v53
  store double %v99, ptr %m18
  %v100 = load double, ptr %m19
  %v101 = fmul double %v100, %v61
  store double %v101, ptr %m19
  %v102 = load double, ptr %m20
  %v103 = fmul double %v102, %v69
  store double %v103, ptr %m20
  %v104 = load double, ptr %m21
  %v105 = fmul double %v104, %v77
  store double %v105, ptr %m21
  %v106 = load double, ptr %m22
  %v107 = fmul double %v106, %v85
  store double %v107, ptr %m22
  %v108 = load double, ptr %m23
  %v109 = fmul double %v108, %v93
  store double %v109, ptr %m23
  %v110 = add i64 %v28, 8
  store i64 %v110, ptr %m27
  br label %L24
L26:
  store i64 %v16, ptr %m114
  br label %L111
L111:
  %v115 = load i64, ptr %m114
  %v116 = icmp slt i64 %v115, %v14
  br i1 %v116, label %L112, label %L113
L112:
  %v117 = load double, ptr %m4
  %v118 = mul i64 %v115, %v6
  %v119 = add i64 %v8, %v118
  %v120 = mul i64 %v119, %is0
  %v121 = add i64 0, %v120
  %v122 = add i64 %v3, %v121
  %v123 = getelementptr double, ptr addrspace(1) %a, i64 %v122
  %v124 = load double, ptr addrspace(1) %v123, align 8
  %v125 = fmul double %v117, %v124
  store double %v125, ptr %m4
  %v126 = add i64 %v115, 1
  store i64 %v126, ptr %m114
  br label %L111
L113:
  %v127 = load double, ptr %m4
  %v128 = load double, ptr %m17
  %v129 = fmul double %v127, %v128
  store double %v129, ptr %m4
  %v130 = load double, ptr %m4
  %v131 = load double, ptr %m18
  %v132 = fmul double %v130, %v131
  store double %v132, ptr %m4
  %v133 = load double, ptr %m4
  %v134 = load double, ptr %m19
  %v135 = fmul double %v133, %v134
  store double %v135, ptr %m4
  %v136 = load double, ptr %m4
  %v137 = load double, ptr %m20
  %v138 = fmul double %v136, %v137
  store double %v138, ptr %m4
  %v139 = load double, ptr %m4
  %v140 = load double, ptr %m21
  %v141 = fmul double %v139, %v140
  store double %v141, ptr %m4
  %v142 = load double, ptr %m4
  %v143 = load double, ptr %m22
  %v144 = fmul double %v142, %v143
  store double %v144, ptr %m4
  %v145 = load double, ptr %m4
  %v146 = load double, ptr %m23
  %v147 = fmul double %v145, %v146
  store double %v147, ptr %m4
  %v148 = getelementptr double, ptr addrspace(3) @shared, i64 %t
  %v149 = load double, ptr %m4
  store double %v149, ptr addrspace(3) %v148, align 8
  call void @llvm.nvvm.barrier.cta.sync.aligned.all(i32 0)
  %v150 = icmp slt i64 %t, 128
  br i1 %v150, label %L151, label %L152
L151:
  %v153 = add i64 %t, 128
  %v154 = getelementptr double, ptr addrspace(3) @shared, i64 %v153
  %v155 = load double, ptr addrspace(3) %v148, align 8
  %v156 = load double, ptr addrspace(3) %v154, align 8
  %v157 = fmul double %v155, %v156
  store double %v157, ptr addrspace(3) %v148, align 8
  br label %L152
L152:
  call void @llvm.nvvm.barrier.cta.sync.aligned.all(i32 0)
  %v158 = icmp slt i64 %t, 64
  br i1 %v158, label %L159, label %L160
L159:
  %v161 = add i64 %t, 64
  %v162 = getelementptr double, ptr addrspace(3) @shared, i64 %v161
  %v163 = load double, ptr addrspace(3) %v148, align 8
  %v164 = load double, ptr addrspace(3) %v162, align 8
  %v165 = fmul double %v163, %v164
  store double %v165, ptr addrspace(3) %v148, align 8
  br label %L160
L160:
  call void @llvm.nvvm.barrier.cta.sync.aligned.all(i32 0)
  %v166 = icmp slt i64 %t, 32
  br i1 %v166, label %L167, label %L168
L167:
  %v169 = add i64 %t, 32
  %v170 = getelementptr double, ptr addrspace(3) @shared, i64 %v169
  %v171 = load double, ptr addrspace(3) %v148, align 8
  %v172 = load double, ptr addrspace(3) %v170, align 8
  %v173 = fmul double %v171, %v172
  store double %v173, ptr addrspace(3) %v148, align 8
  br label %L168
L168:
  call void @llvm.nvvm.barrier.cta.sync.aligned.all(i32 0)
  %v174 = icmp slt i64 %t, 16
  br i1 %v174, label %L175, label %L176
L175:
  %v177 = add i64 %t, 16
  %v178 = getelementptr double, ptr addrspace(3) @shared, i64 %v177
  %v179 = load double, ptr addrspace(3) %v148, align 8
  %v180 = load double, ptr addrspace(3) %v178, align 8
  %v181 = fmul double %v179, %v180
  store double %v181, ptr addrspace(3) %v148, align 8
  br label %L176
L176:
  call void @llvm.nvvm.barrier.cta.sync.aligned.all(i32 0)
  %v182 = icmp slt i64 %t, 8
  br i1 %v182, label %L183, label %L184
L183:
  %v185 = add i64 %t, 8
  %v186 = getelementptr double, ptr addrspace(3) @shared, i64 %v185
  %v187 = load double, ptr addrspace(3) %v148, align 8
  %v188 = load double, ptr addrspace(3) %v186, align 8
  %v189 = fmul double %v187, %v188
  store double %v189, ptr addrspace(3) %v148, align 8
  br label %L184
L184:
  call void @llvm.nvvm.barrier.cta.sync.aligned.all(i32 0)
  %v190 = icmp slt i64 %t, 4
  br i1 %v190, label %L191, label %L192
L191:
  %v193 = add i64 %t, 4
  %v194 = getelementptr double, ptr addrspace(3) @shared, i64 %v193
  %v195 = load double, ptr addrspace(3) %v148, align 8
  %v196 = load double, ptr addrspace(3) %v194, align 8
  %v197 = fmul double %v195, %v196
  store double %v197, ptr addrspace(3) %v148, align 8
  br label %L192
L192:
  call void @llvm.nvvm.barrier.cta.sync.aligned.all(i32 0)
  %v198 = icmp slt i64 %t, 2
  br i1 %v198, label %L199, label %L200
L199:
  %v201 = add i64 %t, 2
  %v202 = getelementptr double, ptr addrspace(3) @shared, i64 %v201
  %v203 = load double, ptr addrspace(3) %v148, align 8
  %v204 = load double, ptr addrspace(3) %v202, align 8
  %v205 = fmul double %v203, %v204
  store double %v205, ptr addrspace(3) %v148, align 8
  br label %L200
L200:
  call void @llvm.nvvm.barrier.cta.sync.aligned.all(i32 0)
  %v206 = icmp slt i64 %t, 1
  br i1 %v206, label %L207, label %L208
L207:
  %v209 = add i64 %t, 1
  %v210 = getelementptr double, ptr addrspace(3) @shared, i64 %v209
  %v211 = load double, ptr addrspace(3) %v148, align 8
  %v212 = load double, ptr addrspace(3) %v210, align 8
  %v213 = fmul double %v211, %v212
  store double %v213, ptr addrspace(3) %v148, align 8
  br label %L208
L208:
  %v214 = icmp slt i64 %t, 1
  %v215 = and i1 %v214, %v1
  br i1 %v215, label %L216, label %L217
L216:
  %v218 = load double, ptr addrspace(3) %v148, align 8
  %v219 = mul i64 %p, %results
  %v220 = add i64 %v219, %b
  %v221 = getelementptr double, ptr addrspace(1) %out, i64 %v220
  store double %v218, ptr addrspace(1) %v221, align 8
  br label %L217
L217:
  ret void
}
