
declare i32 @llvm.nvvm.read.ptx.sreg.tid.x()
declare i32 @llvm.nvvm.read.ptx.sreg.ctaid.x()
declare i32 @llvm.nvvm.read.ptx.sreg.ctaid.y()
declare i32 @llvm.nvvm.read.ptx.sreg.ctaid.z()
declare i32 @llvm.nvvm.read.ptx.sreg.ntid.x()
declare i32 @llvm.nvvm.read.ptx.sreg.nctaid.x()
declare void @llvm.nvvm.barrier.cta.sync.aligned.all(i32)

define ptx_kernel void @pointwise_63cb66b6f4a121c2(ptr addrspace(1) %a0, ptr addrspace(1) %a1, ptr addrspace(1) %out, i64 %n) {
entry:
  %t = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %b = call i32 @llvm.nvvm.read.ptx.sreg.ctaid.x()
  %w = call i32 @llvm.nvvm.read.ptx.sreg.ntid.x()
  %t64 = zext i32 %t to i64
  %b64 = zext i32 %b to i64
  %w64 = zext i32 %w to i64
  %bw = mul i64 %b64, %w64
  %id = add i64 %bw, %t64
  %v1 = mul i64 %id, 2
  %v2 = icmp slt i64 %v1, %n
  br i1 %v2, label %work, label %done
work:
  %v3 = add i64 %v1, 2
  %v4 = icmp sle i64 %v3, %n
  br i1 %v4, label %wide, label %rest
wide:
  %v5 = getelementptr [2 x float], ptr addrspace(1) %a0, i64 %v1
  %v6 = load <4 x float>, ptr addrspace(1) %v5, align 16
  %v7 = getelementptr [2 x float], ptr addrspace(1) %a1, i64 %v1
  %v8 = load <4 x float>, ptr addrspace(1) %v7, align 16
  br label %both
rest:
  %v9 = sub i64 %n, 1
  %v10 = add i64 %v1, 0
  %v11 = icmp slt i64 %v10, %n
  %v12 = select i1 %v11, i64 %v10, i64 %v9
  %v13 = getelementptr [2 x float], ptr addrspace(1) %a0, i64 %v12
  %v14 = load <2 x float>, ptr addrspace(1) %v13, align 4
  %v15 = extractelement <2 x float> %v14, i64 0
  %v16 = extractelement <2 x float> %v14, i64 1
  %v17 = insertelement <4 x float> poison, float %v15, i64 0
  %v18 = insertelement <4 x float> %v17, float %v16, i64 1
  %v19 = add i64 %v1, 1
  %v20 = icmp slt i64 %v19, %n
  %v21 = select i1 %v20, i64 %v19, i64 %v9
  %v22 = getelementptr [2 x float], ptr addrspace(1) %a0, i64 %v21
  %v23 = load <2 x float>, ptr addrspace(1) %v22, align 4
  %v24 = extractelement <2 x float> %v23, i64 0
  %v25 = extractelement <2 x float> %v23, i64 1
  %v26 = insertelement <4 x float> %v18, float %v24, i64 2
  %v27 = insertelement <4 x float> %v26, float %v25, i64 3
  %v28 = add i64 %v1, 0
  %v29 = icmp slt i64 %v28, %n
  %v30 = select i1 %v29, i64 %v28, i64 %v9
  %v31 = getelementptr [2 x float], ptr addrspace(1) %a1, i64 %v30
  %v32 = load <2 x float>, ptr addrspace(1) %v31, align 4
  %v33 = extractelement <2 x float> %v32, i64 0
  %v34 = extractelement <2 x float> %v32, i64 1
  %v35 = insertelement <4 x float> poison, float %v33, i64 0
  %v36 = insertelement <4 x float> %v35, float %v34, i64 1
  %v37 = add i64 %v1, 1
  %v38 = icmp slt i64 %v37, %n
  %v39 = select i1 %v38, i64 %v37, i64 %v9
  %v40 = getelementptr [2 x float], ptr addrspace(1) %a1, i64 %v39
  %v41 = load <2 x float>, ptr addrspace(1) %v40, align 4
  %v42 = extractelement <2 x float> %v41, i64 0
  %v43 = extractelement <2 x float> %v41, i64 1
  %v44 = insertelement <4 x float> %v36, float %v42, i64 2
  %v45 = insertelement <4 x float> %v44, float %v43, i64 3
  br label %both
both:
  %v46 = phi <4 x float> [ %v6, %wide ], [ %v27, %rest ]
  %v47 = phi <4 x float> [ %v8, %wide ], [ %v45, %rest ]
  %v48 = shufflevector <4 x float> %v46, <4 x float> %v46, <2 x i32> <i32 0, i32 2>
  %v49 = shufflevector <4 x float> %v47, <4 x float> %v47, <2 x i32> <i32 0, i32 2>
  %v50 = fmul <2 x float> %v48, %v49
  %v51 = shufflevector <4 x float> %v46, <4 x float> %v46, <2 x i32> <i32 1, i32 3>
  %v52 = shufflevector <4 x float> %v47, <4 x float> %v47, <2 x i32> <i32 1, i32 3>
  %v53 = fmul <2 x float> %v51, %v52
  %v54 = fsub <2 x float> %v50, %v53
  %v55 = fmul <2 x float> %v48, %v52
  %v56 = fmul <2 x float> %v51, %v49
  %v57 = fadd <2 x float> %v55, %v56
  %v58 = shufflevector <2 x float> %v54, <2 x float> %v57, <4 x i32> <i32 0, i32 2, i32 1, i32 3>
  br i1 %v4, label %write, label %some
write:
  %v59 = getelementptr [2 x float], ptr addrspace(1) %out, i64 %v1
  store <4 x float> %v58, ptr addrspace(1) %v59, align 16
  br label %done
some:
  %v60 = add i64 %v1, 0
  %v61 = icmp slt i64 %v60, %n
  br i1 %v61, label %L62, label %L63
L62:
  %v64 = shufflevector <4 x float> %v58, <4 x float> %v58, <2 x i32> <i32 0, i32 1>
  %v65 = getelementptr [2 x float], ptr addrspace(1) %out, i64 %v60
  store <2 x float> %v64, ptr addrspace(1) %v65, align 4
  br label %L63
L63:
  %v66 = add i64 %v1, 1
  %v67 = icmp slt i64 %v66, %n
  br i1 %v67, label %L68, label %L69
L68:
  %v70 = shufflevector <4 x float> %v58, <4 x float> %v58, <2 x i32> <i32 2, i32 3>
  %v71 = getelementptr [2 x float], ptr addrspace(1) %out, i64 %v66
  store <2 x float> %v70, ptr addrspace(1) %v71, align 4
  br label %L69
L69:
  br label %done
done:
  ret void
}
