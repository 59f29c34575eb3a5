
declare i32 @llvm.nvvm.read.ptx.sreg.tid.x()
declare i32 @llvm.nvvm.read.ptx.sreg.ctaid.x()
declare i32 @llvm.nvvm.read.ptx.sreg.ctaid.y()
declare i32 @llvm.nvvm.read.ptx.sreg.ctaid.z()
declare i32 @llvm.nvvm.read.ptx.sreg.ntid.x()
declare i32 @llvm.nvvm.read.ptx.sreg.nctaid.x()
declare void @llvm.nvvm.barrier.cta.sync.aligned.all(i32)

define ptx_kernel void @mask_places_2(ptr addrspace(1) %mask, ptr addrspace(1) %running, ptr addrspace(1) %before, ptr addrspace(1) %out, i64 %count_, i64 %total_, i64 %d0_, i64 %d1_) {
entry:
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
  %v14 = getelementptr i8, ptr addrspace(1) %mask, i64 %v10
  %v15 = load i8, ptr addrspace(1) %v14, align 1
  %v16 = icmp ne i8 %v15, 0
  br i1 %v16, label %L17, label %L18
L17:
  %v19 = sdiv i64 %v10, 2048
  %v20 = icmp eq i64 %v19, 0
  %v21 = sub i64 %v19, 1
  %v22 = select i1 %v20, i64 0, i64 %v21
  %v23 = getelementptr i32, ptr addrspace(1) %before, i64 %v22
  %v24 = load i32, ptr addrspace(1) %v23, align 4
  %v25 = getelementptr i32, ptr addrspace(1) %running, i64 %v10
  %v26 = load i32, ptr addrspace(1) %v25, align 4
  %v27 = select i1 %v20, i32 0, i32 %v24
  %v28 = add i32 %v26, %v27
  %v29 = sext i32 %v28 to i64
  %v30 = sub i64 %v29, 1
  %v31 = udiv i64 %v10, %d1_
  %v32 = mul i64 %v31, %d1_
  %v33 = sub i64 %v10, %v32
  %v34 = mul i64 %total_, 0
  %v35 = add i64 %v34, %v30
  %v36 = getelementptr i64, ptr addrspace(1) %out, i64 %v35
  store i64 %v31, ptr addrspace(1) %v36, align 8
  %v37 = mul i64 %total_, 1
  %v38 = add i64 %v37, %v30
  %v39 = getelementptr i64, ptr addrspace(1) %out, i64 %v38
  store i64 %v33, ptr addrspace(1) %v39, align 8
  br label %L18
L18:
  br label %L13
L13:
  ret void
}
