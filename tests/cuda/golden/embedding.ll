
declare i32 @llvm.nvvm.read.ptx.sreg.tid.x()
declare i32 @llvm.nvvm.read.ptx.sreg.ctaid.x()
declare i32 @llvm.nvvm.read.ptx.sreg.ctaid.y()
declare i32 @llvm.nvvm.read.ptx.sreg.ctaid.z()
declare i32 @llvm.nvvm.read.ptx.sreg.ntid.x()
declare i32 @llvm.nvvm.read.ptx.sreg.nctaid.x()
declare void @llvm.nvvm.barrier.cta.sync.aligned.all(i32)

define ptx_kernel void @index_read_wide_2_l(ptr addrspace(1) %plain, ptr addrspace(1) %table, ptr addrspace(1) %flag, ptr addrspace(1) %numbers0, i64 %count_, i64 %d0_, i64 %d1_, i64 %p0_, i64 %p1_, i64 %s0_, i64 %s1_, i64 %n0_0_, i64 %n0_1_, i64 %low0_, i64 %size0_, i64 %step0_) {
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
  %v14 = udiv i64 %v10, %d1_
  %v15 = mul i64 %v14, %d1_
  %v16 = sub i64 %v10, %v15
  %v17 = mul i64 %v14, %p0_
  %v18 = add i64 0, %v17
  %v19 = mul i64 %v16, %p1_
  %v20 = add i64 %v18, %v19
  %v21 = mul i64 %v14, %s0_
  %v22 = add i64 0, %v21
  %v23 = mul i64 %v16, %s1_
  %v24 = add i64 %v22, %v23
  %v25 = mul i64 %v14, %n0_0_
  %v26 = add i64 0, %v25
  %v27 = mul i64 %v16, %n0_1_
  %v28 = add i64 %v26, %v27
  %v29 = getelementptr i64, ptr addrspace(1) %numbers0, i64 %v28
  %v30 = load i64, ptr addrspace(1) %v29, align 8
  %v31 = icmp sge i64 %v30, %low0_
  %v32 = icmp slt i64 %v30, %size0_
  %v33 = and i1 %v31, %v32
  %v34 = and i1 true, %v33
  %v35 = icmp slt i64 %v30, 0
  %v36 = add i64 %v30, %size0_
  %v37 = select i1 %v35, i64 %v36, i64 %v30
  %v38 = mul i64 %v37, %step0_
  %v39 = add i64 %v24, %v38
  %v40 = mul i64 %v20, 2
  %v41 = mul i64 %v39, 2
  br i1 %v34, label %L42, label %L43
L42:
  %v44 = getelementptr i64, ptr addrspace(1) %table, i64 %v41
  %v45 = load <2 x i64>, ptr addrspace(1) %v44, align 16
  %v46 = getelementptr i64, ptr addrspace(1) %plain, i64 %v40
  store <2 x i64> %v45, ptr addrspace(1) %v46, align 16
  br label %L43
L43:
  %v47 = xor i1 %v34, true
  br i1 %v47, label %L48, label %L49
L48:
  store i32 1, ptr addrspace(1) %flag, align 4
  br label %L49
L49:
  br label %L13
L13:
  ret void
}
