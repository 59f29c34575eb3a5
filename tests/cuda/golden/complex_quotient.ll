
declare i32 @llvm.nvvm.read.ptx.sreg.tid.x()
declare i32 @llvm.nvvm.read.ptx.sreg.ctaid.x()
declare i32 @llvm.nvvm.read.ptx.sreg.ctaid.y()
declare i32 @llvm.nvvm.read.ptx.sreg.ctaid.z()
declare i32 @llvm.nvvm.read.ptx.sreg.ntid.x()
declare i32 @llvm.nvvm.read.ptx.sreg.nctaid.x()
declare void @llvm.nvvm.barrier.cta.sync.aligned.all(i32)

declare <1 x double> @llvm.fabs.v1f64(<1 x double>)
define ptx_kernel void @pointwise_3b939dfc59978094(ptr addrspace(1) %a0, ptr addrspace(1) %a1, ptr addrspace(1) %out, i64 %n, i64 %d0, i64 %d1, i64 %s0_0, i64 %s0_1, i64 %s1_0, i64 %s1_1, i64 %s2_0, i64 %s2_1) {
entry:
  %t = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %b = call i32 @llvm.nvvm.read.ptx.sreg.ctaid.x()
  %w = call i32 @llvm.nvvm.read.ptx.sreg.ntid.x()
  %t64 = zext i32 %t to i64
  %b64 = zext i32 %b to i64
  %w64 = zext i32 %w to i64
  %bw = mul i64 %b64, %w64
  %id = add i64 %bw, %t64
  %v1 = mul i64 %id, 1
  %v2 = icmp slt i64 %v1, %n
  br i1 %v2, label %work, label %done
work:
  %v3 = udiv i64 %v1, %d1
  %v4 = mul i64 %v3, %d1
  %v5 = sub i64 %v1, %v4
  %v6 = mul i64 %v3, %s0_0
  %v7 = add i64 0, %v6
  %v8 = mul i64 %v5, %s0_1
  %v9 = add i64 %v7, %v8
  %v10 = mul i64 %v3, %s1_0
  %v11 = add i64 0, %v10
  %v12 = mul i64 %v5, %s1_1
  %v13 = add i64 %v11, %v12
  %v14 = mul i64 %v3, %s2_0
  %v15 = add i64 0, %v14
  %v16 = mul i64 %v5, %s2_1
  %v17 = add i64 %v15, %v16
  %v18 = getelementptr [2 x double], ptr addrspace(1) %a0, i64 %v9
  %v19 = load <2 x double>, ptr addrspace(1) %v18, align 8
  %v20 = shufflevector <2 x double> %v19, <2 x double> %v19, <2 x i32> <i32 0, i32 1>
  %v21 = getelementptr double, ptr addrspace(1) %a1, i64 %v13
  %v22 = load double, ptr addrspace(1) %v21, align 8
  %v23 = insertelement <1 x double> poison, double %v22, i64 0
  %v24 = shufflevector <1 x double> %v23, <1 x double> poison, <1 x i32> zeroinitializer
  %v25 = call <1 x double> @llvm.fabs.v1f64(<1 x double> %v24)
  %v26 = fcmp oeq <1 x double> %v25, splat (double 0x0000000000000000)
  %v27 = call <1 x double> @llvm.fabs.v1f64(<1 x double> splat (double 0x0000000000000000))
  %v28 = fcmp oeq <1 x double> %v27, splat (double 0x0000000000000000)
  %v29 = and <1 x i1> %v26, %v28
  %v30 = shufflevector <2 x double> %v20, <2 x double> %v20, <1 x i32> <i32 0>
  %v31 = fdiv <1 x double> %v30, %v25
  %v32 = fcmp oge <1 x double> %v25, %v27
  %v33 = shufflevector <2 x double> %v20, <2 x double> %v20, <1 x i32> <i32 1>
  %v34 = select <1 x i1> %v32, <1 x double> splat (double 0x0000000000000000), <1 x double> %v24
  %v35 = select <1 x i1> %v32, <1 x double> %v24, <1 x double> splat (double 0x0000000000000000)
  %v36 = fdiv <1 x double> %v34, %v35
  %v37 = fmul <1 x double> %v33, %v36
  %v38 = fadd <1 x double> %v30, %v37
  %v39 = fmul <1 x double> %v34, %v36
  %v40 = fadd <1 x double> %v35, %v39
  %v41 = fdiv <1 x double> splat (double 0x3FF0000000000000), %v40
  %v42 = fmul <1 x double> %v38, %v41
  %v43 = fmul <1 x double> %v30, %v36
  %v44 = fadd <1 x double> %v43, %v33
  %v45 = fmul <1 x double> %v44, %v41
  %v46 = select <1 x i1> %v32, <1 x double> %v42, <1 x double> %v45
  %v47 = select <1 x i1> %v29, <1 x double> %v31, <1 x double> %v46
  %v48 = fdiv <1 x double> %v33, %v25
  %v49 = fsub <1 x double> %v33, %v43
  %v50 = fmul <1 x double> %v49, %v41
  %v51 = fsub <1 x double> %v37, %v30
  %v52 = fmul <1 x double> %v51, %v41
  %v53 = select <1 x i1> %v32, <1 x double> %v50, <1 x double> %v52
  %v54 = select <1 x i1> %v29, <1 x double> %v48, <1 x double> %v53
  %v55 = shufflevector <1 x double> %v47, <1 x double> %v54, <2 x i32> <i32 0, i32 1>
  %v56 = shufflevector <2 x double> %v55, <2 x double> %v55, <2 x i32> <i32 0, i32 1>
  %v57 = getelementptr [2 x double], ptr addrspace(1) %out, i64 %v17
  store <2 x double> %v56, ptr addrspace(1) %v57, align 8
  br label %done
done:
  ret void
}
