
declare i32 @llvm.nvvm.read.ptx.sreg.tid.x()
declare i32 @llvm.nvvm.read.ptx.sreg.ctaid.x()
declare i32 @llvm.nvvm.read.ptx.sreg.ctaid.y()
declare i32 @llvm.nvvm.read.ptx.sreg.ctaid.z()
declare i32 @llvm.nvvm.read.ptx.sreg.ntid.x()
declare i32 @llvm.nvvm.read.ptx.sreg.nctaid.x()
declare void @llvm.nvvm.barrier.cta.sync.aligned.all(i32)

define ptx_kernel void @pointwise_b6b0602b57ac1e1b(ptr addrspace(1) %a0, ptr addrspace(1) %a1, ptr addrspace(1) %out, i64 %n) {
entry:
  %t = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %b = call i32 @llvm.nvvm.read.ptx.sreg.ctaid.x()
  %w = call i32 @llvm.nvvm.read.ptx.sreg.ntid.x()
  %t64 = zext i32 %t to i64
  %b64 = zext i32 %b to i64
  %w64 = zext i32 %w to i64
  %bw = mul i64 %b64, %w64
  %id = add i64 %bw, %t64
  %v1 = mul i64 %id, 4
  %v2 = icmp slt i64 %v1, %n
  br i1 %v2, label %work, label %done
work:
  %v3 = add i64 %v1, 4
  %v4 = icmp sle i64 %v3, %n
  br i1 %v4, label %wide, label %rest
wide:
  %v5 = getelementptr float, ptr addrspace(1) %a0, i64 %v1
  %v6 = load <4 x float>, ptr addrspace(1) %v5, align 16
  %v7 = getelementptr float, ptr addrspace(1) %a1, i64 %v1
  %v8 = load <4 x float>, ptr addrspace(1) %v7, align 16
  br label %both
rest:
  %v9 = sub i64 %n, 1
  %v10 = add i64 %v1, 0
  %v11 = icmp slt i64 %v10, %n
  %v12 = select i1 %v11, i64 %v10, i64 %v9
  %v13 = getelementptr float, ptr addrspace(1) %a0, i64 %v12
  %v14 = load float, ptr addrspace(1) %v13, align 4
  %v15 = insertelement <4 x float> poison, float %v14, i64 0
  %v16 = add i64 %v1, 1
  %v17 = icmp slt i64 %v16, %n
  %v18 = select i1 %v17, i64 %v16, i64 %v9
  %v19 = getelementptr float, ptr addrspace(1) %a0, i64 %v18
  %v20 = load float, ptr addrspace(1) %v19, align 4
  %v21 = insertelement <4 x float> %v15, float %v20, i64 1
  %v22 = add i64 %v1, 2
  %v23 = icmp slt i64 %v22, %n
  %v24 = select i1 %v23, i64 %v22, i64 %v9
  %v25 = getelementptr float, ptr addrspace(1) %a0, i64 %v24
  %v26 = load float, ptr addrspace(1) %v25, align 4
  %v27 = insertelement <4 x float> %v21, float %v26, i64 2
  %v28 = add i64 %v1, 3
  %v29 = icmp slt i64 %v28, %n
  %v30 = select i1 %v29, i64 %v28, i64 %v9
  %v31 = getelementptr float, ptr addrspace(1) %a0, i64 %v30
  %v32 = load float, ptr addrspace(1) %v31, align 4
  %v33 = insertelement <4 x float> %v27, float %v32, i64 3
  %v34 = add i64 %v1, 0
  %v35 = icmp slt i64 %v34, %n
  %v36 = select i1 %v35, i64 %v34, i64 %v9
  %v37 = getelementptr float, ptr addrspace(1) %a1, i64 %v36
  %v38 = load float, ptr addrspace(1) %v37, align 4
  %v39 = insertelement <4 x float> poison, float %v38, i64 0
  %v40 = add i64 %v1, 1
  %v41 = icmp slt i64 %v40, %n
  %v42 = select i1 %v41, i64 %v40, i64 %v9
  %v43 = getelementptr float, ptr addrspace(1) %a1, i64 %v42
  %v44 = load float, ptr addrspace(1) %v43, align 4
  %v45 = insertelement <4 x float> %v39, float %v44, i64 1
  %v46 = add i64 %v1, 2
  %v47 = icmp slt i64 %v46, %n
  %v48 = select i1 %v47, i64 %v46, i64 %v9
  %v49 = getelementptr float, ptr addrspace(1) %a1, i64 %v48
  %v50 = load float, ptr addrspace(1) %v49, align 4
  %v51 = insertelement <4 x float> %v45, float %v50, i64 2
  %v52 = add i64 %v1, 3
  %v53 = icmp slt i64 %v52, %n
  %v54 = select i1 %v53, i64 %v52, i64 %v9
  %v55 = getelementptr float, ptr addrspace(1) %a1, i64 %v54
  %v56 = load float, ptr addrspace(1) %v55, align 4
  %v57 = insertelement <4 x float> %v51, float %v56, i64 3
  br label %both
both:
  %v58 = phi <4 x float> [ %v6, %wide ], [ %v33, %rest ]
  %v59 = phi <4 x float> [ %v8, %wide ], [ %v57, %rest ]
  %v60 = fmul <4 x float> %v58, %v59
  br i1 %v4, label %write, label %some
write:
  %v61 = getelementptr float, ptr addrspace(1) %out, i64 %v1
  store <4 x float> %v60, ptr addrspace(1) %v61, align 16
  br label %done
some:
  %v62 = add i64 %v1, 0
  %v63 = icmp slt i64 %v62, %n
  br i1 %v63, label %L64, label %L65
L64:
  %v66 = extractelement <4 x float> %v60, i64 0
  %v67 = getelementptr float, ptr addrspace(1) %out, i64 %v62
  store float %v66, ptr addrspace(1) %v67, align 4
  br label %L65
L65:
  %v68 = add i64 %v1, 1
  %v69 = icmp slt i64 %v68, %n
  br i1 %v69, label %L70, label %L71
L70:
  %v72 = extractelement <4 x float> %v60, i64 1
  %v73 = getelementptr float, ptr addrspace(1) %out, i64 %v68
  store float %v72, ptr addrspace(1) %v73, align 4
  br label %L71
L71:
  %v74 = add i64 %v1, 2
  %v75 = icmp slt i64 %v74, %n
  br i1 %v75, label %L76, label %L77
L76:
  %v78 = extractelement <4 x float> %v60, i64 2
  %v79 = getelementptr float, ptr addrspace(1) %out, i64 %v74
  store float %v78, ptr addrspace(1) %v79, align 4
  br label %L77
L77:
  %v80 = add i64 %v1, 3
  %v81 = icmp slt i64 %v80, %n
  br i1 %v81, label %L82, label %L83
L82:
  %v84 = extractelement <4 x float> %v60, i64 3
  %v85 = getelementptr float, ptr addrspace(1) %out, i64 %v80
  store float %v84, ptr addrspace(1) %v85, align 4
  br label %L83
L83:
  br label %done
done:
  ret void
}
