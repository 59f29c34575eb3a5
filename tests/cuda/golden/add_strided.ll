
declare i32 @llvm.nvvm.read.ptx.sreg.tid.x()
declare i32 @llvm.nvvm.read.ptx.sreg.ctaid.x()
declare i32 @llvm.nvvm.read.ptx.sreg.ctaid.y()
declare i32 @llvm.nvvm.read.ptx.sreg.ctaid.z()
declare i32 @llvm.nvvm.read.ptx.sreg.ntid.x()
declare i32 @llvm.nvvm.read.ptx.sreg.nctaid.x()
declare void @llvm.nvvm.barrier.cta.sync.aligned.all(i32)

define ptx_kernel void @pointwise_f4a5ef4d8de526ab(ptr addrspace(1) %a0, ptr addrspace(1) %a1, ptr addrspace(1) %out, i64 %n, i64 %d0, i64 %d1, i64 %s0_0, i64 %s0_1, i64 %s1_0, i64 %s1_1, i64 %s2_0, i64 %s2_1) {
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
  %v18 = getelementptr i16, ptr addrspace(1) %a0, i64 %v9
  %v19 = load i16, ptr addrspace(1) %v18, align 2
  %v20 = insertelement <1 x i16> poison, i16 %v19, i64 0
  %v21 = shufflevector <1 x i16> %v20, <1 x i16> poison, <1 x i32> zeroinitializer
  %v22 = getelementptr i16, ptr addrspace(1) %a1, i64 %v13
  %v23 = load i16, ptr addrspace(1) %v22, align 2
  %v24 = insertelement <1 x i16> poison, i16 %v23, i64 0
  %v25 = shufflevector <1 x i16> %v24, <1 x i16> poison, <1 x i32> zeroinitializer
  %v26 = bitcast <1 x i16> %v21 to <1 x half>
  %v27 = fpext <1 x half> %v26 to <1 x float>
  %v28 = bitcast <1 x i16> %v25 to <1 x half>
  %v29 = fpext <1 x half> %v28 to <1 x float>
  %v30 = fadd <1 x float> %v27, %v29
  %v31 = fptrunc <1 x float> %v30 to <1 x half>
  %v32 = bitcast <1 x half> %v31 to <1 x i16>
  %v33 = extractelement <1 x i16> %v32, i64 0
  %v34 = getelementptr i16, ptr addrspace(1) %out, i64 %v17
  store i16 %v33, ptr addrspace(1) %v34, align 2
  br label %done
done:
  ret void
}
