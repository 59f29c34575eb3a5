
declare i32 @llvm.nvvm.read.ptx.sreg.tid.x()
declare i32 @llvm.nvvm.read.ptx.sreg.ctaid.x()
declare i32 @llvm.nvvm.read.ptx.sreg.ctaid.y()
declare i32 @llvm.nvvm.read.ptx.sreg.ctaid.z()
declare i32 @llvm.nvvm.read.ptx.sreg.ntid.x()
declare i32 @llvm.nvvm.read.ptx.sreg.nctaid.x()
declare void @llvm.nvvm.barrier.cta.sync.aligned.all(i32)

define ptx_kernel void @resample_float(ptr addrspace(1) %x, ptr addrspace(1) %out, ptr addrspace(1) %starts, ptr addrspace(1) %places, ptr addrspace(1) %weights, i64 %count_, i64 %rows_, i64 %size_, i64 %inner_) {
entry:
  %m20 = alloca float, align 64
  %m29 = alloca i64, align 64
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
  %v14 = udiv i64 %v10, %inner_
  %v15 = mul i64 %v14, %inner_
  %v16 = sub i64 %v10, %v15
  %v17 = udiv i64 %v14, %rows_
  %v18 = mul i64 %v17, %rows_
  %v19 = sub i64 %v14, %v18
  store float 0x0000000000000000, ptr %m20
  %v21 = getelementptr i64, ptr addrspace(1) %starts, i64 %v19
  %v22 = load i64, ptr addrspace(1) %v21, align 8
  %v23 = add i64 %v19, 1
  %v24 = getelementptr i64, ptr addrspace(1) %starts, i64 %v23
  %v25 = load i64, ptr addrspace(1) %v24, align 8
  store i64 %v22, ptr %m29
  br label %L26
L26:
  %v30 = load i64, ptr %m29
  %v31 = icmp slt i64 %v30, %v25
  br i1 %v31, label %L27, label %L28
L27:
  %v32 = getelementptr i64, ptr addrspace(1) %places, i64 %v30
  %v33 = load i64, ptr addrspace(1) %v32, align 8
  %v34 = mul i64 %v17, %size_
  %v35 = add i64 %v34, %v33
  %v36 = mul i64 %v35, %inner_
  %v37 = add i64 %v36, %v16
  %v38 = getelementptr float, ptr addrspace(1) %x, i64 %v37
  %v39 = load float, ptr addrspace(1) %v38, align 4
  %v40 = load float, ptr %m20
  %v41 = getelementptr float, ptr addrspace(1) %weights, i64 %v30
  %v42 = load float, ptr addrspace(1) %v41, align 4
  %v43 = fmul contract float %v39, %v42
  %v44 = fadd contract float %v40, %v43
  store float %v44, ptr %m20
  %v45 = add i64 %v30, 1
  store i64 %v45, ptr %m29
  br label %L26
L28:
  %v46 = load float, ptr %m20
  %v47 = getelementptr float, ptr addrspace(1) %out, i64 %v10
  store float %v46, ptr addrspace(1) %v47, align 4
  br label %L13
L13:
  ret void
}
