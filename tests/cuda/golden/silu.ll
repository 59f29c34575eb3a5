
declare i32 @llvm.nvvm.read.ptx.sreg.tid.x()
declare i32 @llvm.nvvm.read.ptx.sreg.ctaid.x()
declare i32 @llvm.nvvm.read.ptx.sreg.ctaid.y()
declare i32 @llvm.nvvm.read.ptx.sreg.ctaid.z()
declare i32 @llvm.nvvm.read.ptx.sreg.ntid.x()
declare i32 @llvm.nvvm.read.ptx.sreg.nctaid.x()
declare void @llvm.nvvm.barrier.cta.sync.aligned.all(i32)

declare <4 x float> @llvm.fma.v4f32(<4 x float>, <4 x float>, <4 x float>)
define ptx_kernel void @pointwise_108ce6c2baadd9a6(ptr addrspace(1) %a0, ptr addrspace(1) %out, i64 %n) {
entry:
  %t = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %b = call i32 @llvm.nvvm.read.ptx.sreg.ctaid.x()
  %w = call i32 @llvm.nvvm.read.ptx.sreg.ntid.x()
  %t64 = zext i32 %t to i64
  %b64 = zext i32 %b to i64
  %w64 = zext i32 %w to i64
  %bw = mul i64 %b64, %w64
  %id = add i64 %bw, %t64
  %v1 = mul i64 %id, 4
  %v2 = icmp slt i64 %v1, %n
  br i1 %v2, label %work, label %done
work:
  %v3 = add i64 %v1, 4
  %v4 = icmp sle i64 %v3, %n
  br i1 %v4, label %wide, label %rest
wide:
  %v5 = getelementptr float, ptr addrspace(1) %a0, i64 %v1
  %v6 = load <4 x float>, ptr addrspace(1) %v5, align 16
  br label %both
rest:
  %v7 = sub i64 %n, 1
  %v8 = add i64 %v1, 0
  %v9 = icmp slt i64 %v8, %n
  %v10 = select i1 %v9, i64 %v8, i64 %v7
  %v11 = getelementptr float, ptr addrspace(1) %a0, i64 %v10
  %v12 = load float, ptr addrspace(1) %v11, align 4
  %v13 = insertelement <4 x float> poison, float %v12, i64 0
  %v14 = add i64 %v1, 1
  %v15 = icmp slt i64 %v14, %n
  %v16 = select i1 %v15, i64 %v14, i64 %v7
  %v17 = getelementptr float, ptr addrspace(1) %a0, i64 %v16
  %v18 = load float, ptr addrspace(1) %v17, align 4
  %v19 = insertelement <4 x float> %v13, float %v18, i64 1
  %v20 = add i64 %v1, 2
  %v21 = icmp slt i64 %v20, %n
  %v22 = select i1 %v21, i64 %v20, i64 %v7
  %v23 = getelementptr float, ptr addrspace(1) %a0, i64 %v22
  %v24 = load float, ptr addrspace(1) %v23, align 4
  %v25 = insertelement <4 x float> %v19, float %v24, i64 2
  %v26 = add i64 %v1, 3
  %v27 = icmp slt i64 %v26, %n
  %v28 = select i1 %v27, i64 %v26, i64 %v7
  %v29 = getelementptr float, ptr addrspace(1) %a0, i64 %v28
  %v30 = load float, ptr addrspace(1) %v29, align 4
  %v31 = insertelement <4 x float> %v25, float %v30, i64 3
  br label %both
both:
  %v32 = phi <4 x float> [ %v6, %wide ], [ %v31, %rest ]
  %v33 = fneg <4 x float> %v32
  %v34 = fcmp ogt <4 x float> %v33, splat (float 0x4056B33340000000)
  %v35 = select <4 x i1> %v34, <4 x float> splat (float 0x4056B33340000000), <4 x float> %v33
  %v36 = fcmp olt <4 x float> %v35, splat (float 0xC05A800000000000)
  %v37 = select <4 x i1> %v36, <4 x float> splat (float 0xC05A800000000000), <4 x float> %v35
  %v38 = call <4 x float> @llvm.fma.v4f32(<4 x float> %v37, <4 x float> splat (float 0x3FF7154760000000), <4 x float> splat (float 0x4168000000000000))
  %v39 = fsub contract <4 x float> %v38, splat (float 0x4168000000000000)
  %v40 = bitcast <4 x float> %v38 to <4 x i32>
  %v41 = sub <4 x i32> %v40, splat (i32 1262485504)
  %v42 = call <4 x float> @llvm.fma.v4f32(<4 x float> %v39, <4 x float> splat (float 0xBFE62E4000000000), <4 x float> %v37)
  %v43 = call <4 x float> @llvm.fma.v4f32(<4 x float> %v39, <4 x float> splat (float 0xBEB7F7D1C0000000), <4 x float> %v42)
  %v44 = fmul contract <4 x float> %v43, %v43
  %v45 = call <4 x float> @llvm.fma.v4f32(<4 x float> splat (float 0x3F56A1A6E0000000), <4 x float> %v43, <4 x float> splat (float 0x3F8123FC60000000))
  %v46 = call <4 x float> @llvm.fma.v4f32(<4 x float> %v45, <4 x float> %v43, <4 x float> splat (float 0x3FA5559160000000))
  %v47 = call <4 x float> @llvm.fma.v4f32(<4 x float> %v46, <4 x float> %v43, <4 x float> splat (float 0x3FC55548A0000000))
  %v48 = call <4 x float> @llvm.fma.v4f32(<4 x float> %v47, <4 x float> %v43, <4 x float> splat (float 0x3FDFFFFFC0000000))
  %v49 = call <4 x float> @llvm.fma.v4f32(<4 x float> %v44, <4 x float> %v48, <4 x float> %v43)
  %v50 = fadd contract <4 x float> %v49, splat (float 0x3FF0000000000000)
  %v51 = ashr <4 x i32> %v41, splat (i32 1)
  %v52 = add <4 x i32> %v51, splat (i32 127)
  %v53 = shl <4 x i32> %v52, splat (i32 23)
  %v54 = bitcast <4 x i32> %v53 to <4 x float>
  %v55 = fmul contract <4 x float> %v50, %v54
  %v56 = sub <4 x i32> %v41, %v51
  %v57 = add <4 x i32> %v56, splat (i32 127)
  %v58 = shl <4 x i32> %v57, splat (i32 23)
  %v59 = bitcast <4 x i32> %v58 to <4 x float>
  %v60 = fmul contract <4 x float> %v55, %v59
  %v61 = fadd <4 x float> splat (float 0x3FF0000000000000), %v60
  %v62 = fdiv <4 x float> %v32, %v61
  br i1 %v4, label %write, label %some
write:
  %v63 = getelementptr float, ptr addrspace(1) %out, i64 %v1
  store <4 x float> %v62, ptr addrspace(1) %v63, align 16
  br label %done
some:
  %v64 = add i64 %v1, 0
  %v65 = icmp slt i64 %v64, %n
  br i1 %v65, label %L66, label %L67
L66:
  %v68 = extractelement <4 x float> %v62, i64 0
  %v69 = getelementptr float, ptr addrspace(1) %out, i64 %v64
  store float %v68, ptr addrspace(1) %v69, align 4
  br label %L67
L67:
  %v70 = add i64 %v1, 1
  %v71 = icmp slt i64 %v70, %n
  br i1 %v71, label %L72, label %L73
L72:
  %v74 = extractelement <4 x float> %v62, i64 1
  %v75 = getelementptr float, ptr addrspace(1) %out, i64 %v70
  store float %v74, ptr addrspace(1) %v75, align 4
  br label %L73
L73:
  %v76 = add i64 %v1, 2
  %v77 = icmp slt i64 %v76, %n
  br i1 %v77, label %L78, label %L79
L78:
  %v80 = extractelement <4 x float> %v62, i64 2
  %v81 = getelementptr float, ptr addrspace(1) %out, i64 %v76
  store float %v80, ptr addrspace(1) %v81, align 4
  br label %L79
L79:
  %v82 = add i64 %v1, 3
  %v83 = icmp slt i64 %v82, %n
  br i1 %v83, label %L84, label %L85
L84:
  %v86 = extractelement <4 x float> %v62, i64 3
  %v87 = getelementptr float, ptr addrspace(1) %out, i64 %v82
  store float %v86, ptr addrspace(1) %v87, align 4
  br label %L85
L85:
  br label %done
done:
  ret void
}
