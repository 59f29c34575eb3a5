
declare i32 @llvm.nvvm.read.ptx.sreg.tid.x()
declare i32 @llvm.nvvm.read.ptx.sreg.ctaid.x()
declare i32 @llvm.nvvm.read.ptx.sreg.ctaid.y()
declare i32 @llvm.nvvm.read.ptx.sreg.ctaid.z()
declare i32 @llvm.nvvm.read.ptx.sreg.ntid.x()
declare i32 @llvm.nvvm.read.ptx.sreg.nctaid.x()
declare void @llvm.nvvm.barrier.cta.sync.aligned.all(i32)

define ptx_kernel void @index_prod_float_1_l(ptr addrspace(1) %plain, ptr addrspace(1) %table, ptr addrspace(1) %flag, ptr addrspace(1) %numbers0, i64 %count_, i64 %d0_, i64 %p0_, i64 %s0_, i64 %n0_0_, i64 %low0_, i64 %size0_, i64 %step0_) {
entry:
  %m37 = alloca i32, align 64
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
  %v14 = mul i64 %v10, %p0_
  %v15 = add i64 0, %v14
  %v16 = mul i64 %v10, %s0_
  %v17 = add i64 0, %v16
  %v18 = mul i64 %v10, %n0_0_
  %v19 = add i64 0, %v18
  %v20 = getelementptr i64, ptr addrspace(1) %numbers0, i64 %v19
  %v21 = load i64, ptr addrspace(1) %v20, align 8
  %v22 = icmp sge i64 %v21, %low0_
  %v23 = icmp slt i64 %v21, %size0_
  %v24 = and i1 %v22, %v23
  %v25 = and i1 true, %v24
  %v26 = icmp slt i64 %v21, 0
  %v27 = add i64 %v21, %size0_
  %v28 = select i1 %v26, i64 %v27, i64 %v21
  %v29 = mul i64 %v28, %step0_
  %v30 = add i64 %v17, %v29
  br i1 %v25, label %L31, label %L32
L31:
  %v33 = getelementptr float, ptr addrspace(1) %table, i64 %v30
  %v34 = getelementptr float, ptr addrspace(1) %plain, i64 %v15
  %v35 = load float, ptr addrspace(1) %v34, align 4
  %v36 = load i32, ptr addrspace(1) %v33, align 4
  store i32 %v36, ptr %m37
  br label %L38
L38:
  %v40 = load i32, ptr %m37
  %v41 = bitcast i32 %v40 to float
  %v42 = fmul float %v41, %v35
  %v43 = bitcast float %v42 to i32
  %v44 = cmpxchg ptr addrspace(1) %v33, i32 %v40, i32 %v43 monotonic monotonic
  %v45 = extractvalue { i32, i1 } %v44, 0
  store i32 %v45, ptr %m37
  %v46 = extractvalue { i32, i1 } %v44, 1
  br i1 %v46, label %L39, label %L38
L39:
  br label %L32
L32:
  %v47 = xor i1 %v25, true
  br i1 %v47, label %L48, label %L49
L48:
  store i32 1, ptr addrspace(1) %flag, align 4
  br label %L49
L49:
  br label %L13
L13:
  ret void
}
