
declare i32 @llvm.nvvm.read.ptx.sreg.tid.x()
declare i32 @llvm.nvvm.read.ptx.sreg.ctaid.x()
declare i32 @llvm.nvvm.read.ptx.sreg.ctaid.y()
declare i32 @llvm.nvvm.read.ptx.sreg.ctaid.z()
declare i32 @llvm.nvvm.read.ptx.sreg.ntid.x()
declare i32 @llvm.nvvm.read.ptx.sreg.nctaid.x()
declare void @llvm.nvvm.barrier.cta.sync.aligned.all(i32)

define ptx_kernel void @extremum_min_i32_columns(ptr addrspace(1) %x, ptr addrspace(1) %out, ptr addrspace(1) %places, i64 %count_, i64 %length_, i64 %inner_) {
entry:
  %m25 = alloca i64, align 64
  %m26 = alloca i64, align 64
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
  %v11 = udiv i64 %v10, %inner_
  %v12 = mul i64 %v11, %inner_
  %v13 = mul i64 %v12, %length_
  %v14 = mul i64 %v11, %inner_
  %v15 = sub i64 %v10, %v14
  %v16 = add i64 %v13, %v15
  %v17 = icmp slt i64 %v10, %count_
  br i1 %v17, label %L18, label %L19
L18:
  %v20 = mul i64 0, %inner_
  %v21 = add i64 %v16, %v20
  %v22 = getelementptr i32, ptr addrspace(1) %x, i64 %v21
  %v23 = load i32, ptr addrspace(1) %v22, align 4
  %v24 = sext i32 %v23 to i64
  store i64 %v24, ptr %m25
  store i64 0, ptr %m26
  %v27 = add i64 0, 1
  store i64 %v27, ptr %m31
  br label %L28
L28:
  %v32 = load i64, ptr %m31
  %v33 = icmp slt i64 %v32, %length_
  br i1 %v33, label %L29, label %L30
L29:
  %v34 = mul i64 %v32, %inner_
  %v35 = add i64 %v16, %v34
  %v36 = getelementptr i32, ptr addrspace(1) %x, i64 %v35
  %v37 = load i32, ptr addrspace(1) %v36, align 4
  %v38 = sext i32 %v37 to i64
  %v39 = load i64, ptr %m25
  %v40 = icmp slt i64 %v38, %v39
  %v41 = load i64, ptr %m25
  %v42 = select i1 %v40, i64 %v38, i64 %v41
  store i64 %v42, ptr %m25
  %v43 = load i64, ptr %m26
  %v44 = select i1 %v40, i64 %v32, i64 %v43
  store i64 %v44, ptr %m26
  %v45 = add i64 %v32, 1
  store i64 %v45, ptr %m31
  br label %L28
L30:
  %v46 = load i64, ptr %m25
  %v47 = load i64, ptr %m26
  %v48 = trunc i64 %v46 to i32
  %v49 = getelementptr i32, ptr addrspace(1) %out, i64 %v10
  store i32 %v48, ptr addrspace(1) %v49, align 4
  %v50 = getelementptr i64, ptr addrspace(1) %places, i64 %v10
  store i64 %v47, ptr addrspace(1) %v50, align 8
  br label %L19
L19:
  ret void
}
