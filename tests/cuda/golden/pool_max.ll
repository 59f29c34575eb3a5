
declare i32 @llvm.nvvm.read.ptx.sreg.tid.x()
declare i32 @llvm.nvvm.read.ptx.sreg.ctaid.x()
declare i32 @llvm.nvvm.read.ptx.sreg.ctaid.y()
declare i32 @llvm.nvvm.read.ptx.sreg.ctaid.z()
declare i32 @llvm.nvvm.read.ptx.sreg.ntid.x()
declare i32 @llvm.nvvm.read.ptx.sreg.nctaid.x()
declare void @llvm.nvvm.barrier.cta.sync.aligned.all(i32)

define ptx_kernel void @pool_max_float(ptr addrspace(1) %x, ptr addrspace(1) %out, ptr addrspace(1) %places, i64 %count_, i64 %o0_, i64 %o1_, i64 %o2_, i64 %i0_, i64 %i1_, i64 %i2_, i64 %k0_, i64 %k1_, i64 %k2_, i64 %s0_, i64 %s1_, i64 %s2_, i64 %p0_, i64 %p1_, i64 %p2_, i64 %d0_, i64 %d1_, i64 %d2_, i64 %padded_, i64 %divisor_) {
entry:
  %m26 = alloca float, align 64
  %m27 = alloca i64, align 64
  %m37 = alloca i64, align 64
  %m50 = alloca i64, align 64
  %m65 = alloca i64, align 64
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
  %v14 = udiv i64 %v10, %o2_
  %v15 = mul i64 %v14, %o2_
  %v16 = sub i64 %v10, %v15
  %v17 = udiv i64 %v14, %o1_
  %v18 = mul i64 %v17, %o1_
  %v19 = sub i64 %v14, %v18
  %v20 = udiv i64 %v17, %o0_
  %v21 = mul i64 %v20, %o0_
  %v22 = sub i64 %v17, %v21
  %v23 = mul i64 %i0_, %i1_
  %v24 = mul i64 %v23, %i2_
  %v25 = mul i64 %v20, %v24
  store float 0xFFF0000000000000, ptr %m26
  store i64 -1, ptr %m27
  %v28 = mul i64 %v22, %s0_
  %v29 = sub i64 %v28, %p0_
  %v30 = mul i64 %v19, %s1_
  %v31 = sub i64 %v30, %p1_
  %v32 = mul i64 %v16, %s2_
  %v33 = sub i64 %v32, %p2_
  store i64 0, ptr %m37
  br label %L34
L34:
  %v38 = load i64, ptr %m37
  %v39 = icmp slt i64 %v38, %k0_
  br i1 %v39, label %L35, label %L36
L35:
  %v40 = mul i64 %v38, %d0_
  %v41 = add i64 %v29, %v40
  %v42 = icmp sge i64 %v41, 0
  %v43 = icmp slt i64 %v41, %i0_
  %v44 = and i1 %v42, %v43
  br i1 %v44, label %L45, label %L46
L45:
  store i64 0, ptr %m50
  br label %L47
L47:
  %v51 = load i64, ptr %m50
  %v52 = icmp slt i64 %v51, %k1_
  br i1 %v52, label %L48, label %L49
L48:
  %v53 = mul i64 %v51, %d1_
  %v54 = add i64 %v31, %v53
  %v55 = icmp sge i64 %v54, 0
  %v56 = icmp slt i64 %v54, %i1_
  %v57 = and i1 %v55, %v56
  br i1 %v57, label %L58, label %L59
L58:
  %v60 = mul i64 %v41, %i1_
  %v61 = add i64 %v60, %v54
  store i64 0, ptr %m65
  br label %L62
L62:
  %v66 = load i64, ptr %m65
  %v67 = icmp slt i64 %v66, %k2_
  br i1 %v67, label %L63, label %L64
L63:
  %v68 = mul i64 %v66, %d2_
  %v69 = add i64 %v33, %v68
  %v70 = icmp sge i64 %v69, 0
  %v71 = icmp slt i64 %v69, %i2_
  %v72 = and i1 %v70, %v71
  br i1 %v72, label %L73, label %L74
L73:
  %v75 = mul i64 %v61, %i2_
  %v76 = add i64 %v75, %v69
  %v77 = add i64 %v25, %v76
  %v78 = getelementptr float, ptr addrspace(1) %x, i64 %v77
  %v79 = load float, ptr addrspace(1) %v78, align 4
  %v80 = load float, ptr %m26
  %v81 = fcmp ogt float %v79, %v80
  %v82 = fcmp uno float %v79, %v79
  %v83 = load i64, ptr %m27
  %v84 = icmp slt i64 %v83, 0
  %v85 = or i1 %v81, %v82
  %v86 = or i1 %v85, %v84
  %v87 = load float, ptr %m26
  %v88 = select i1 %v86, float %v79, float %v87
  store float %v88, ptr %m26
  %v89 = load i64, ptr %m27
  %v90 = select i1 %v86, i64 %v76, i64 %v89
  store i64 %v90, ptr %m27
  br label %L74
L74:
  %v91 = add i64 %v66, 1
  store i64 %v91, ptr %m65
  br label %L62
L64:
  br label %L59
L59:
  %v92 = add i64 %v51, 1
  store i64 %v92, ptr %m50
  br label %L47
L49:
  br label %L46
L46:
  %v93 = add i64 %v38, 1
  store i64 %v93, ptr %m37
  br label %L34
L36:
  %v94 = load float, ptr %m26
  %v95 = getelementptr float, ptr addrspace(1) %out, i64 %v10
  store float %v94, ptr addrspace(1) %v95, align 4
  %v96 = load i64, ptr %m27
  %v97 = getelementptr i64, ptr addrspace(1) %places, i64 %v10
  store i64 %v96, ptr addrspace(1) %v97, align 8
  br label %L13
L13:
  ret void
}
