
declare i32 @llvm.nvvm.read.ptx.sreg.tid.x()
declare i32 @llvm.nvvm.read.ptx.sreg.ctaid.x()
declare i32 @llvm.nvvm.read.ptx.sreg.ctaid.y()
declare i32 @llvm.nvvm.read.ptx.sreg.ctaid.z()
declare i32 @llvm.nvvm.read.ptx.sreg.ntid.x()
declare i32 @llvm.nvvm.read.ptx.sreg.nctaid.x()
declare void @llvm.nvvm.barrier.cta.sync.aligned.all(i32)

define ptx_kernel void @pointwise_4398f5b88939920d(ptr addrspace(1) %a0, ptr addrspace(1) %a1, ptr addrspace(1) %out, i64 %n, i64 %d0, i64 %d1, i64 %d2, i64 %s0_0, i64 %s0_1, i64 %s0_2, i64 %s1_0, i64 %s1_1, i64 %s1_2, i64 %s2_0, i64 %s2_1, i64 %s2_2) {
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
  %v3 = trunc i64 %v1 to i32
  %v4 = trunc i64 %d2 to i32
  %v5 = udiv i32 %v3, %v4
  %v6 = mul i32 %v5, %v4
  %v7 = sub i32 %v3, %v6
  %v8 = trunc i64 %d1 to i32
  %v9 = udiv i32 %v5, %v8
  %v10 = mul i32 %v9, %v8
  %v11 = sub i32 %v5, %v10
  %v12 = trunc i64 %s0_0 to i32
  %v13 = mul i32 %v9, %v12
  %v14 = add i32 0, %v13
  %v15 = trunc i64 %s0_1 to i32
  %v16 = mul i32 %v11, %v15
  %v17 = add i32 %v14, %v16
  %v18 = trunc i64 %s0_2 to i32
  %v19 = mul i32 %v7, %v18
  %v20 = add i32 %v17, %v19
  %v21 = trunc i64 %s1_0 to i32
  %v22 = mul i32 %v9, %v21
  %v23 = add i32 0, %v22
  %v24 = trunc i64 %s1_1 to i32
  %v25 = mul i32 %v11, %v24
  %v26 = add i32 %v23, %v25
  %v27 = trunc i64 %s1_2 to i32
  %v28 = mul i32 %v7, %v27
  %v29 = add i32 %v26, %v28
  %v30 = trunc i64 %s2_0 to i32
  %v31 = mul i32 %v9, %v30
  %v32 = add i32 0, %v31
  %v33 = trunc i64 %s2_1 to i32
  %v34 = mul i32 %v11, %v33
  %v35 = add i32 %v32, %v34
  %v36 = trunc i64 %s2_2 to i32
  %v37 = mul i32 %v7, %v36
  %v38 = add i32 %v35, %v37
  %v39 = getelementptr float, ptr addrspace(1) %a0, i32 %v20
  %v40 = load float, ptr addrspace(1) %v39, align 4
  %v41 = insertelement <1 x float> poison, float %v40, i64 0
  %v42 = shufflevector <1 x float> %v41, <1 x float> poison, <1 x i32> zeroinitializer
  %v43 = getelementptr float, ptr addrspace(1) %a1, i32 %v29
  %v44 = load float, ptr addrspace(1) %v43, align 4
  %v45 = insertelement <1 x float> poison, float %v44, i64 0
  %v46 = shufflevector <1 x float> %v45, <1 x float> poison, <1 x i32> zeroinitializer
  %v47 = fadd <1 x float> %v42, %v46
  %v48 = extractelement <1 x float> %v47, i64 0
  %v49 = getelementptr float, ptr addrspace(1) %out, i32 %v38
  store float %v48, ptr addrspace(1) %v49, align 4
  br label %done
done:
  ret void
}
