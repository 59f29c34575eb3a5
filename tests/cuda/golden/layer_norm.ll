
declare i32 @llvm.nvvm.read.ptx.sreg.tid.x()
declare i32 @llvm.nvvm.read.ptx.sreg.ctaid.x()
declare i32 @llvm.nvvm.read.ptx.sreg.ctaid.y()
declare i32 @llvm.nvvm.read.ptx.sreg.ctaid.z()
declare i32 @llvm.nvvm.read.ptx.sreg.ntid.x()
declare i32 @llvm.nvvm.read.ptx.sreg.nctaid.x()
declare void @llvm.nvvm.barrier.cta.sync.aligned.all(i32)

declare float @llvm.nvvm.shfl.sync.bfly.f32(i32, float, i32, i32)
declare float @llvm.sqrt.f32(float)
define ptx_kernel void @layer_norm_float_32_4_4_wb(ptr addrspace(1) %in0, ptr addrspace(1) %out0, ptr addrspace(1) %weight, ptr addrspace(1) %bias, ptr addrspace(1) %mean, ptr addrspace(1) %rstd, i64 %rows_, i64 %length_, i64 %period_, double %eps_) "nvvm.maxntid"="256" {
entry:
  %v1 = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %v2 = sext i32 %v1 to i64
  %v3 = call i32 @llvm.nvvm.read.ptx.sreg.ctaid.x()
  %v4 = sext i32 %v3 to i64
  %v5 = call i32 @llvm.nvvm.read.ptx.sreg.ctaid.y()
  %v6 = sext i32 %v5 to i64
  %v7 = call i32 @llvm.nvvm.read.ptx.sreg.ctaid.z()
  %v8 = sext i32 %v7 to i64
  %v9 = and i64 %v2, 31
  %v10 = mul i64 %v4, 8
  %v11 = sdiv i64 %v2, 32
  %v12 = add i64 %v10, %v11
  %v13 = icmp slt i64 %v12, %rows_
  %v14 = select i1 %v13, i64 %v12, i64 0
  %v15 = mul i64 %v14, %length_
  %v16 = add i64 %v9, 0
  %v17 = mul i64 %v16, 4
  %v18 = icmp slt i64 %v17, %length_
  %v19 = add i64 %v17, %v15
  %v20 = select i1 %v18, i64 %v19, i64 0
  %v21 = getelementptr float, ptr addrspace(1) %in0, i64 %v20
  %v22 = load <4 x float>, ptr addrspace(1) %v21, align 16
  %v23 = extractelement <4 x float> %v22, i64 0
  %v24 = extractelement <4 x float> %v22, i64 1
  %v25 = extractelement <4 x float> %v22, i64 2
  %v26 = extractelement <4 x float> %v22, i64 3
  %v27 = select i1 %v18, float %v23, float 0x0000000000000000
  %v28 = insertelement <4 x float> zeroinitializer, float %v27, i64 0
  %v29 = select i1 %v18, float %v24, float 0x0000000000000000
  %v30 = insertelement <4 x float> %v28, float %v29, i64 1
  %v31 = select i1 %v18, float %v25, float 0x0000000000000000
  %v32 = insertelement <4 x float> %v30, float %v31, i64 2
  %v33 = select i1 %v18, float %v26, float 0x0000000000000000
  %v34 = insertelement <4 x float> %v32, float %v33, i64 3
  %v35 = extractelement <4 x float> %v34, i64 0
  %v36 = extractelement <4 x float> %v34, i64 1
  %v37 = fadd float %v35, %v36
  %v38 = extractelement <4 x float> %v34, i64 2
  %v39 = fadd float %v37, %v38
  %v40 = extractelement <4 x float> %v34, i64 3
  %v41 = fadd float %v39, %v40
  %v42 = call float @llvm.nvvm.shfl.sync.bfly.f32(i32 -1, float %v41, i32 16, i32 31)
  %v43 = fadd float %v41, %v42
  %v44 = call float @llvm.nvvm.shfl.sync.bfly.f32(i32 -1, float %v43, i32 8, i32 31)
  %v45 = fadd float %v43, %v44
  %v46 = call float @llvm.nvvm.shfl.sync.bfly.f32(i32 -1, float %v45, i32 4, i32 31)
  %v47 = fadd float %v45, %v46
  %v48 = call float @llvm.nvvm.shfl.sync.bfly.f32(i32 -1, float %v47, i32 2, i32 31)
  %v49 = fadd float %v47, %v48
  %v50 = call float @llvm.nvvm.shfl.sync.bfly.f32(i32 -1, float %v49, i32 1, i32 31)
  %v51 = fadd float %v49, %v50
  %v52 = sitofp i64 %length_ to float
  %v53 = fdiv float %v51, %v52
  %v54 = insertelement <4 x float> poison, float %v53, i64 0
  %v55 = shufflevector <4 x float> %v54, <4 x float> poison, <4 x i32> zeroinitializer
  %v56 = fsub contract <4 x float> %v34, %v55
  %v57 = icmp slt i64 %v17, %length_
  %v58 = extractelement <4 x float> %v56, i64 0
  %v59 = select i1 %v57, float %v58, float 0x0000000000000000
  %v60 = insertelement <4 x float> %v56, float %v59, i64 0
  %v61 = extractelement <4 x float> %v60, i64 1
  %v62 = select i1 %v57, float %v61, float 0x0000000000000000
  %v63 = insertelement <4 x float> %v60, float %v62, i64 1
  %v64 = extractelement <4 x float> %v63, i64 2
  %v65 = select i1 %v57, float %v64, float 0x0000000000000000
  %v66 = insertelement <4 x float> %v63, float %v65, i64 2
  %v67 = extractelement <4 x float> %v66, i64 3
  %v68 = select i1 %v57, float %v67, float 0x0000000000000000
  %v69 = insertelement <4 x float> %v66, float %v68, i64 3
  %v70 = fmul contract <4 x float> %v69, %v69
  %v71 = extractelement <4 x float> %v70, i64 0
  %v72 = extractelement <4 x float> %v70, i64 1
  %v73 = fadd float %v71, %v72
  %v74 = extractelement <4 x float> %v70, i64 2
  %v75 = fadd float %v73, %v74
  %v76 = extractelement <4 x float> %v70, i64 3
  %v77 = fadd float %v75, %v76
  %v78 = call float @llvm.nvvm.shfl.sync.bfly.f32(i32 -1, float %v77, i32 16, i32 31)
  %v79 = fadd float %v77, %v78
  %v80 = call float @llvm.nvvm.shfl.sync.bfly.f32(i32 -1, float %v79, i32 8, i32 31)
  %v81 = fadd float %v79, %v80
  %v82 = call float @llvm.nvvm.shfl.sync.bfly.f32(i32 -1, float %v81, i32 4, i32 31)
  %v83 = fadd float %v81, %v82
  %v84 = call float @llvm.nvvm.shfl.sync.bfly.f32(i32 -1, float %v83, i32 2, i32 31)
  %v85 = fadd float %v83, %v84
  %v86 = call float @llvm.nvvm.shfl.sync.bfly.f32(i32 -1, float %v85, i32 1, i32 31)
  %v87 = fadd float %v85, %v86
  %v88 = sitofp i64 %length_ to float
  %v89 = fdiv float %v87, %v88
  %v90 = fptrunc double %eps_ to float
  %v91 = fadd contract float %v89, %v90
  %v92 = call float @llvm.sqrt.f32(float %v91)
  %v93 = fdiv float 0x3FF0000000000000, %v92
  %v94 = icmp eq i64 %v9, 0
  %v95 = and i1 %v94, %v13
  br i1 %v95, label %L96, label %L97
L96:
  %v98 = getelementptr float, ptr addrspace(1) %mean, i64 %v12
  store float %v53, ptr addrspace(1) %v98, align 4
  br label %L97
L97:
  %v99 = icmp eq i64 %v9, 0
  %v100 = and i1 %v99, %v13
  br i1 %v100, label %L101, label %L102
L101:
  %v103 = getelementptr float, ptr addrspace(1) %rstd, i64 %v12
  store float %v93, ptr addrspace(1) %v103, align 4
  br label %L102
L102:
  %v104 = insertelement <4 x float> poison, float %v93, i64 0
  %v105 = shufflevector <4 x float> %v104, <4 x float> poison, <4 x i32> zeroinitializer
  %v106 = fmul contract <4 x float> %v69, %v105
  %v107 = icmp slt i64 %v17, %length_
  %v108 = select i1 %v107, i64 %v17, i64 0
  %v109 = getelementptr float, ptr addrspace(1) %weight, i64 %v108
  %v110 = load <4 x float>, ptr addrspace(1) %v109, align 16
  %v111 = extractelement <4 x float> %v110, i64 0
  %v112 = extractelement <4 x float> %v110, i64 1
  %v113 = extractelement <4 x float> %v110, i64 2
  %v114 = extractelement <4 x float> %v110, i64 3
  %v115 = select i1 %v107, float %v111, float 0x0000000000000000
  %v116 = insertelement <4 x float> zeroinitializer, float %v115, i64 0
  %v117 = select i1 %v107, float %v112, float 0x0000000000000000
  %v118 = insertelement <4 x float> %v116, float %v117, i64 1
  %v119 = select i1 %v107, float %v113, float 0x0000000000000000
  %v120 = insertelement <4 x float> %v118, float %v119, i64 2
  %v121 = select i1 %v107, float %v114, float 0x0000000000000000
  %v122 = insertelement <4 x float> %v120, float %v121, i64 3
  %v123 = icmp slt i64 %v17, %length_
  %v124 = select i1 %v123, i64 %v17, i64 0
  %v125 = getelementptr float, ptr addrspace(1) %bias, i64 %v124
  %v126 = load <4 x float>, ptr addrspace(1) %v125, align 16
  %v127 = extractelement <4 x float> %v126, i64 0
  %v128 = extractelement <4 x float> %v126, i64 1
  %v129 = extractelement <4 x float> %v126, i64 2
  %v130 = extractelement <4 x float> %v126, i64 3
  %v131 = select i1 %v123, float %v127, float 0x0000000000000000
  %v132 = insertelement <4 x float> zeroinitializer, float %v131, i64 0
  %v133 = select i1 %v123, float %v128, float 0x0000000000000000
  %v134 = insertelement <4 x float> %v132, float %v133, i64 1
  %v135 = select i1 %v123, float %v129, float 0x0000000000000000
  %v136 = insertelement <4 x float> %v134, float %v135, i64 2
  %v137 = select i1 %v123, float %v130, float 0x0000000000000000
  %v138 = insertelement <4 x float> %v136, float %v137, i64 3
  %v139 = fmul contract <4 x float> %v106, %v122
  %v140 = fadd contract <4 x float> %v139, %v138
  %v141 = icmp slt i64 %v17, %length_
  %v142 = and i1 %v141, %v13
  br i1 %v142, label %L143, label %L144
L143:
  %v145 = extractelement <4 x float> %v140, i64 0
  %v146 = extractelement <4 x float> %v140, i64 1
  %v147 = extractelement <4 x float> %v140, i64 2
  %v148 = extractelement <4 x float> %v140, i64 3
  %v149 = insertelement <4 x float> poison, float %v145, i64 0
  %v150 = insertelement <4 x float> %v149, float %v146, i64 1
  %v151 = insertelement <4 x float> %v150, float %v147, i64 2
  %v152 = insertelement <4 x float> %v151, float %v148, i64 3
  %v153 = add i64 %v15, %v17
  %v154 = getelementptr float, ptr addrspace(1) %out0, i64 %v153
  store <4 x float> %v152, ptr addrspace(1) %v154, align 16
  br label %L144
L144:
  ret void
}
