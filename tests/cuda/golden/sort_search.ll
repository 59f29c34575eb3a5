
declare i32 @llvm.nvvm.read.ptx.sreg.tid.x()
declare i32 @llvm.nvvm.read.ptx.sreg.ctaid.x()
declare i32 @llvm.nvvm.read.ptx.sreg.ctaid.y()
declare i32 @llvm.nvvm.read.ptx.sreg.ctaid.z()
declare i32 @llvm.nvvm.read.ptx.sreg.ntid.x()
declare i32 @llvm.nvvm.read.ptx.sreg.nctaid.x()
declare void @llvm.nvvm.barrier.cta.sync.aligned.all(i32)

define ptx_kernel void @sort_search_float_right(ptr addrspace(1) %x, ptr addrspace(1) %values, ptr addrspace(1) %places, i64 %count_, i64 %length_, i64 %each_) {
entry:
  %m30 = alloca i64, align 64
  %m31 = alloca i64, align 64
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
  %v14 = icmp ne i64 %each_, 0
  %v15 = select i1 %v14, i64 %each_, i64 1
  %v16 = udiv i64 %v10, %v15
  %v17 = mul i64 %v16, %length_
  %v18 = select i1 %v14, i64 %v17, i64 0
  %v19 = getelementptr float, ptr addrspace(1) %values, i64 %v10
  %v20 = load float, ptr addrspace(1) %v19, align 4
  %v21 = bitcast float %v20 to i32
  %v22 = ashr i32 %v21, 31
  %v23 = and i32 %v22, 2147483647
  %v24 = xor i32 %v21, %v23
  %v25 = fcmp oeq float %v20, 0x0000000000000000
  %v26 = select i1 %v25, i32 0, i32 %v24
  %v27 = fcmp uno float %v20, %v20
  %v28 = select i1 %v27, i32 2147483647, i32 %v26
  %v29 = sext i32 %v28 to i64
  store i64 0, ptr %m30
  store i64 %length_, ptr %m31
  br label %L32
L32:
  %v35 = load i64, ptr %m30
  %v36 = load i64, ptr %m31
  %v37 = icmp slt i64 %v35, %v36
  br i1 %v37, label %L33, label %L34
L33:
  %v38 = load i64, ptr %m30
  %v39 = load i64, ptr %m31
  %v40 = sub i64 %v39, %v38
  %v41 = ashr i64 %v40, 1
  %v42 = add i64 %v38, %v41
  %v43 = add i64 %v18, %v42
  %v44 = getelementptr float, ptr addrspace(1) %x, i64 %v43
  %v45 = load float, ptr addrspace(1) %v44, align 4
  %v46 = bitcast float %v45 to i32
  %v47 = ashr i32 %v46, 31
  %v48 = and i32 %v47, 2147483647
  %v49 = xor i32 %v46, %v48
  %v50 = fcmp oeq float %v45, 0x0000000000000000
  %v51 = select i1 %v50, i32 0, i32 %v49
  %v52 = fcmp uno float %v45, %v45
  %v53 = select i1 %v52, i32 2147483647, i32 %v51
  %v54 = sext i32 %v53 to i64
  %v55 = icmp sle i64 %v54, %v29
  %v56 = add i64 %v42, 1
  %v57 = select i1 %v55, i64 %v56, i64 %v38
  store i64 %v57, ptr %m30
  %v58 = select i1 %v55, i64 %v39, i64 %v42
  store i64 %v58, ptr %m31
  br label %L32
L34:
  %v59 = load i64, ptr %m30
  %v60 = getelementptr i64, ptr addrspace(1) %places, i64 %v10
  store i64 %v59, ptr addrspace(1) %v60, align 8
  br label %L13
L13:
  ret void
}
