
declare i32 @llvm.nvvm.read.ptx.sreg.tid.x()
declare i32 @llvm.nvvm.read.ptx.sreg.ctaid.x()
declare i32 @llvm.nvvm.read.ptx.sreg.ctaid.y()
declare i32 @llvm.nvvm.read.ptx.sreg.ctaid.z()
declare i32 @llvm.nvvm.read.ptx.sreg.ntid.x()
declare i32 @llvm.nvvm.read.ptx.sreg.nctaid.x()
declare void @llvm.nvvm.barrier.cta.sync.aligned.all(i32)

define ptx_kernel void @pointwise_ffb3d1a561351d7a(ptr addrspace(1) %a0, ptr addrspace(1) %a1, ptr addrspace(1) %out, i64 %n) {
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
  %v5 = getelementptr i64, ptr addrspace(1) %a0, i64 %v1
  %v6 = load <2 x i64>, ptr addrspace(1) %v5, align 16
  %v7 = getelementptr i64, ptr addrspace(1) %a1, i64 %v1
  %v8 = load <2 x i64>, ptr addrspace(1) %v7, align 16
  br label %both
rest:
  %v9 = sub i64 %n, 1
  %v10 = add i64 %v1, 0
  %v11 = icmp slt i64 %v10, %n
  %v12 = select i1 %v11, i64 %v10, i64 %v9
  %v13 = getelementptr i64, ptr addrspace(1) %a0, i64 %v12
  %v14 = load i64, ptr addrspace(1) %v13, align 8
  %v15 = insertelement <2 x i64> poison, i64 %v14, i64 0
  %v16 = add i64 %v1, 1
  %v17 = icmp slt i64 %v16, %n
  %v18 = select i1 %v17, i64 %v16, i64 %v9
  %v19 = getelementptr i64, ptr addrspace(1) %a0, i64 %v18
  %v20 = load i64, ptr addrspace(1) %v19, align 8
  %v21 = insertelement <2 x i64> %v15, i64 %v20, i64 1
  %v22 = add i64 %v1, 0
  %v23 = icmp slt i64 %v22, %n
  %v24 = select i1 %v23, i64 %v22, i64 %v9
  %v25 = getelementptr i64, ptr addrspace(1) %a1, i64 %v24
  %v26 = load i64, ptr addrspace(1) %v25, align 8
  %v27 = insertelement <2 x i64> poison, i64 %v26, i64 0
  %v28 = add i64 %v1, 1
  %v29 = icmp slt i64 %v28, %n
  %v30 = select i1 %v29, i64 %v28, i64 %v9
  %v31 = getelementptr i64, ptr addrspace(1) %a1, i64 %v30
  %v32 = load i64, ptr addrspace(1) %v31, align 8
  %v33 = insertelement <2 x i64> %v27, i64 %v32, i64 1
  br label %both
both:
  %v34 = phi <2 x i64> [ %v6, %wide ], [ %v21, %rest ]
  %v35 = phi <2 x i64> [ %v8, %wide ], [ %v33, %rest ]
  %v36 = icmp eq <2 x i64> %v35, splat (i64 -1)
  %v37 = icmp eq <2 x i64> %v35, splat (i64 0)
  %v38 = sub <2 x i64> splat (i64 0), %v34
  %v39 = select <2 x i1> %v37, <2 x i64> splat (i64 1), <2 x i64> %v35
  %v40 = select <2 x i1> %v36, <2 x i64> splat (i64 1), <2 x i64> %v39
  %v41 = sdiv <2 x i64> %v34, %v40
  %v42 = select <2 x i1> %v36, <2 x i64> %v38, <2 x i64> %v41
  %v43 = mul <2 x i64> %v42, %v35
  %v44 = sub <2 x i64> %v34, %v43
  %v45 = xor <2 x i64> %v44, %v35
  %v46 = icmp slt <2 x i64> %v45, splat (i64 0)
  %v47 = icmp ne <2 x i64> %v44, splat (i64 0)
  %v48 = and <2 x i1> %v46, %v47
  %v49 = add <2 x i64> %v44, %v35
  %v50 = select <2 x i1> %v48, <2 x i64> %v49, <2 x i64> %v44
  %v51 = select <2 x i1> %v37, <2 x i64> splat (i64 0), <2 x i64> %v50
  br i1 %v4, label %write, label %some
write:
  %v52 = getelementptr i64, ptr addrspace(1) %out, i64 %v1
  store <2 x i64> %v51, ptr addrspace(1) %v52, align 16
  br label %done
some:
  %v53 = add i64 %v1, 0
  %v54 = icmp slt i64 %v53, %n
  br i1 %v54, label %L55, label %L56
L55:
  %v57 = extractelement <2 x i64> %v51, i64 0
  %v58 = getelementptr i64, ptr addrspace(1) %out, i64 %v53
  store i64 %v57, ptr addrspace(1) %v58, align 8
  br label %L56
L56:
  %v59 = add i64 %v1, 1
  %v60 = icmp slt i64 %v59, %n
  br i1 %v60, label %L61, label %L62
L61:
  %v63 = extractelement <2 x i64> %v51, i64 1
  %v64 = getelementptr i64, ptr addrspace(1) %out, i64 %v59
  store i64 %v63, ptr addrspace(1) %v64, align 8
  br label %L62
L62:
  br label %done
done:
  ret void
}
