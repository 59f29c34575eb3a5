
declare i32 @llvm.nvvm.read.ptx.sreg.tid.x()
declare i32 @llvm.nvvm.read.ptx.sreg.ctaid.x()
declare i32 @llvm.nvvm.read.ptx.sreg.ctaid.y()
declare i32 @llvm.nvvm.read.ptx.sreg.ctaid.z()
declare i32 @llvm.nvvm.read.ptx.sreg.ntid.x()
declare i32 @llvm.nvvm.read.ptx.sreg.nctaid.x()
declare void @llvm.nvvm.barrier.cta.sync.aligned.all(i32)

define ptx_kernel void @pool_adaptive_max_bfloat(ptr addrspace(1) %x, ptr addrspace(1) %out, ptr addrspace(1) %places, i64 %count_, i64 %o0_, i64 %o1_, i64 %o2_, i64 %i0_, i64 %i1_, i64 %i2_, i64 %k0_, i64 %k1_, i64 %k2_, i64 %s0_, i64 %s1_, i64 %s2_, i64 %p0_, i64 %p1_, i64 %p2_, i64 %d0_, i64 %d1_, i64 %d2_, i64 %padded_, i64 %divisor_) {
entry:
  %m26 = alloca float, align 64
  %m27 = alloca i64, align 64
  %m38 = alloca i64, align 64
  %m51 = alloca i64, align 64
  %m66 = alloca i64, align 64
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
  %v28 = mul i64 %v22, %i0_
  %v29 = sdiv i64 %v28, %o0_
  %v30 = add i64 %v22, 1
  %v31 = mul i64 %v30, %i0_
  %v32 = add i64 %v31, %o0_
  %v33 = sub i64 %v32, 1
  %v34 = sdiv i64 %v33, %o0_
  store i64 %v29, ptr %m38
  br label %L35
L35:
  %v39 = load i64, ptr %m38
  %v40 = icmp slt i64 %v39, %v34
  br i1 %v40, label %L36, label %L37
L36:
  %v41 = mul i64 %v19, %i1_
  %v42 = sdiv i64 %v41, %o1_
  %v43 = add i64 %v19, 1
  %v44 = mul i64 %v43, %i1_
  %v45 = add i64 %v44, %o1_
  %v46 = sub i64 %v45, 1
  %v47 = sdiv i64 %v46, %o1_
  store i64 %v42, ptr %m51
  br label %L48
L48:
  %v52 = load i64, ptr %m51
  %v53 = icmp slt i64 %v52, %v47
  br i1 %v53, label %L49, label %L50
L49:
  %v54 = mul i64 %v39, %i1_
  %v55 = add i64 %v54, %v52
  %v56 = mul i64 %v16, %i2_
  %v57 = sdiv i64 %v56, %o2_
  %v58 = add i64 %v16, 1
  %v59 = mul i64 %v58, %i2_
  %v60 = add i64 %v59, %o2_
  %v61 = sub i64 %v60, 1
  %v62 = sdiv i64 %v61, %o2_
  store i64 %v57, ptr %m66
  br label %L63
L63:
  %v67 = load i64, ptr %m66
  %v68 = icmp slt i64 %v67, %v62
  br i1 %v68, label %L64, label %L65
L64:
  %v69 = mul i64 %v55, %i2_
  %v70 = add i64 %v69, %v67
  %v71 = add i64 %v25, %v70
  %v72 = getelementptr i16, ptr addrspace(1) %x, i64 %v71
  %v73 = load i16, ptr addrspace(1) %v72, align 2
  %v74 = insertelement <1 x i16> poison, i16 %v73, i64 0
  %v75 = zext <1 x i16> %v74 to <1 x i32>
  %v76 = shl <1 x i32> %v75, splat (i32 16)
  %v77 = bitcast <1 x i32> %v76 to <1 x float>
  %v78 = extractelement <1 x float> %v77, i64 0
  %v79 = load float, ptr %m26
  %v80 = fcmp ogt float %v78, %v79
  %v81 = fcmp uno float %v78, %v78
  %v82 = load i64, ptr %m27
  %v83 = icmp slt i64 %v82, 0
  %v84 = or i1 %v80, %v81
  %v85 = or i1 %v84, %v83
  %v86 = load float, ptr %m26
  %v87 = select i1 %v85, float %v78, float %v86
  store float %v87, ptr %m26
  %v88 = load i64, ptr %m27
  %v89 = select i1 %v85, i64 %v70, i64 %v88
  store i64 %v89, ptr %m27
  %v90 = add i64 %v67, 1
  store i64 %v90, ptr %m66
  br label %L63
L65:
  %v91 = add i64 %v52, 1
  store i64 %v91, ptr %m51
  br label %L48
L50:
  %v92 = add i64 %v39, 1
  store i64 %v92, ptr %m38
  br label %L35
L37:
  %v93 = load float, ptr %m26
  %v94 = insertelement <1 x float> poison, float %v93, i64 0
  %v95 = bitcast <1 x float> %v94 to <1 x i32>
  %v96 = and <1 x i32> %v95, splat (i32 2147483647)
  %v97 = xor <1 x i32> %v95, %v96
  %v98 = lshr <1 x i32> %v97, splat (i32 16)
  %v99 = fcmp uno <1 x float> %v94, %v94
  %v100 = lshr <1 x i32> %v96, splat (i32 16)
  %v101 = and <1 x i32> %v100, splat (i32 1)
  %v102 = add <1 x i32> %v96, splat (i32 32767)
  %v103 = add <1 x i32> %v102, %v101
  %v104 = lshr <1 x i32> %v103, splat (i32 16)
  %v105 = select <1 x i1> %v99, <1 x i32> splat (i32 32704), <1 x i32> %v104
  %v106 = or <1 x i32> %v105, %v98
  %v107 = trunc <1 x i32> %v106 to <1 x i16>
  %v108 = extractelement <1 x i16> %v107, i64 0
  %v109 = getelementptr i16, ptr addrspace(1) %out, i64 %v10
  store i16 %v108, ptr addrspace(1) %v109, align 2
  %v110 = load i64, ptr %m27
  %v111 = getelementptr i64, ptr addrspace(1) %places, i64 %v10
  store i64 %v110, ptr addrspace(1) %v111, align 8
  br label %L13
L13:
  ret void
}
