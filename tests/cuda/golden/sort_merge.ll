
declare i32 @llvm.nvvm.read.ptx.sreg.tid.x()
declare i32 @llvm.nvvm.read.ptx.sreg.ctaid.x()
declare i32 @llvm.nvvm.read.ptx.sreg.ctaid.y()
declare i32 @llvm.nvvm.read.ptx.sreg.ctaid.z()
declare i32 @llvm.nvvm.read.ptx.sreg.ntid.x()
declare i32 @llvm.nvvm.read.ptx.sreg.nctaid.x()
declare void @llvm.nvvm.barrier.cta.sync.aligned.all(i32)

define ptx_kernel void @sort_merge(ptr addrspace(1) %keys, ptr addrspace(1) %places, ptr addrspace(1) %new_keys, ptr addrspace(1) %new_places, i64 %count_, i64 %length_, i64 %run_) {
entry:
  %m30 = alloca i64, align 64
  %m32 = alloca i64, align 64
  %v1 = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %v2 = sext i32 %v1 to i64
  %v3 = call i32 @llvm.nvvm.read.ptx.sreg.ctaid.x()
  %v4 = sext i32 %v3 to i64
  %v5 = call i32 @llvm.nvvm.read.ptx.sreg.ctaid.y()
  %v6 = sext i32 %v5 to i64
  %v7 = call i32 @llvm.nvvm.read.ptx.sreg.ctaid.z()
  %v8 = sext i32 %v7 to i64
  %v9 = mul i64 %v4, 256
  %v10 = add i64 %v9, %v2
  %v11 = icmp slt i64 %v10, %count_
  br i1 %v11, label %L12, label %L13
L12:
  %v14 = udiv i64 %v10, %length_
  %v15 = mul i64 %v14, %length_
  %v16 = sub i64 %v10, %v15
  %v17 = mul i64 %run_, 2
  %v18 = udiv i64 %v16, %v17
  %v19 = mul i64 %v18, %v17
  %v20 = add i64 %v19, %run_
  %v21 = add i64 %v19, %v17
  %v22 = icmp slt i64 %v20, %length_
  %v23 = select i1 %v22, i64 %v20, i64 %length_
  %v24 = icmp slt i64 %v21, %length_
  %v25 = select i1 %v24, i64 %v21, i64 %length_
  %v26 = icmp slt i64 %v16, %v23
  %v27 = getelementptr i64, ptr addrspace(1) %keys, i64 %v10
  %v28 = load i64, ptr addrspace(1) %v27, align 8
  %v29 = select i1 %v26, i64 %v23, i64 %v19
  store i64 %v29, ptr %m30
  %v31 = select i1 %v26, i64 %v25, i64 %v23
  store i64 %v31, ptr %m32
  %v33 = load i64, ptr %m30
  br label %L34
L34:
  %v37 = load i64, ptr %m30
  %v38 = load i64, ptr %m32
  %v39 = icmp slt i64 %v37, %v38
  br i1 %v39, label %L35, label %L36
L35:
  %v40 = load i64, ptr %m30
  %v41 = load i64, ptr %m32
  %v42 = load i64, ptr %m30
  %v43 = sub i64 %v41, %v42
  %v44 = ashr i64 %v43, 1
  %v45 = add i64 %v40, %v44
  %v46 = add i64 %v15, %v45
  %v47 = getelementptr i64, ptr addrspace(1) %keys, i64 %v46
  %v48 = load i64, ptr addrspace(1) %v47, align 8
  %v49 = icmp slt i64 %v48, %v28
  %v50 = xor i1 %v26, true
  %v51 = icmp eq i64 %v48, %v28
  %v52 = and i1 %v51, %v50
  %v53 = or i1 %v49, %v52
  %v54 = load i64, ptr %m30
  %v55 = load i64, ptr %m32
  %v56 = add i64 %v45, 1
  %v57 = select i1 %v53, i64 %v56, i64 %v54
  store i64 %v57, ptr %m30
  %v58 = select i1 %v53, i64 %v55, i64 %v45
  store i64 %v58, ptr %m32
  br label %L34
L36:
  %v59 = load i64, ptr %m30
  %v60 = sub i64 %v59, %v33
  %v61 = sub i64 %v23, %v19
  %v62 = sub i64 %v16, %v61
  %v63 = select i1 %v26, i64 %v16, i64 %v62
  %v64 = add i64 %v15, %v63
  %v65 = add i64 %v64, %v60
  %v66 = getelementptr i64, ptr addrspace(1) %new_keys, i64 %v65
  store i64 %v28, ptr addrspace(1) %v66, align 8
  %v67 = getelementptr i64, ptr addrspace(1) %places, i64 %v10
  %v68 = load i64, ptr addrspace(1) %v67, align 8
  %v69 = getelementptr i64, ptr addrspace(1) %new_places, i64 %v65
  store i64 %v68, ptr addrspace(1) %v69, align 8
  br label %L13
L13:
  ret void
}
