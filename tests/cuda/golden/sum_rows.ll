@shared = internal addrspace(3) global [256 x float] undef, align 16

declare i32 @llvm.nvvm.read.ptx.sreg.tid.x()
declare i32 @llvm.nvvm.read.ptx.sreg.ctaid.x()
declare i32 @llvm.nvvm.read.ptx.sreg.ctaid.y()
declare i32 @llvm.nvvm.read.ptx.sreg.ctaid.z()
declare i32 @llvm.nvvm.read.ptx.sreg.ntid.x()
declare i32 @llvm.nvvm.read.ptx.sreg.nctaid.x()
declare void @llvm.nvvm.barrier.cta.sync.aligned.all(i32)

define ptx_kernel void @reduce_sum_float_1_1_rows(ptr addrspace(1) %a, ptr addrspace(1) %out, i64 %results, i64 %count, i64 %parts, i64 %od0, i64 %os0, i64 %id0, i64 %is0) {
entry:
  %m4 = alloca float, align 64
  %m12 = alloca i64, align 64
  %t32 = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %t = zext i32 %t32 to i64
  %b32 = call i32 @llvm.nvvm.read.ptx.sreg.ctaid.x()
  %b = zext i32 %b32 to i64
  %p32 = call i32 @llvm.nvvm.read.ptx.sreg.ctaid.y()
  %p = zext i32 %p32 to i64
  %v1 = icmp slt i64 %b, %results
  %v2 = mul i64 %b, %os0
  %v3 = add i64 0, %v2
  store float 0x0000000000000000, ptr %m4
  %v5 = select i1 %v1, i64 %count, i64 0
  %v6 = mul i64 %p, 256
  %v7 = add i64 %t, %v6
  %v8 = mul i64 %parts, 256
  store i64 %v7, ptr %m12
  br label %L9
L9:
  %v13 = load i64, ptr %m12
  %v14 = icmp slt i64 %v13, %v5
  br i1 %v14, label %L10, label %L11
L10:
  %v15 = mul i64 %v13, %is0
  %v16 = add i64 0, %v15
  %v17 = add i64 %v3, %v16
  %v18 = getelementptr float, ptr addrspace(1) %a, i64 %v17
  %v19 = load float, ptr addrspace(1) %v18, align 4
  %v20 = load float, ptr %m4
  %v21 = fadd float %v20, %v19
  store float %v21, ptr %m4
  %v22 = add i64 %v13, %v8
  store i64 %v22, ptr %m12
  br label %L9
L11:
  %v23 = getelementptr float, ptr addrspace(3) @shared, i64 %t
  %v24 = load float, ptr %m4
  store float %v24, ptr addrspace(3) %v23, align 4
  call void @llvm.nvvm.barrier.cta.sync.aligned.all(i32 0)
  %v25 = icmp slt i64 %t, 128
  br i1 %v25, label %L26, label %L27
L26:
  %v28 = add i64 %t, 128
  %v29 = getelementptr float, ptr addrspace(3) @shared, i64 %v28
  %v30 = load float, ptr addrspace(3) %v23, align 4
  %v31 = load float, ptr addrspace(3) %v29, align 4
  %v32 = fadd float %v30, %v31
  store float %v32, ptr addrspace(3) %v23, align 4
  br label %L27
L27:
  call void @llvm.nvvm.barrier.cta.sync.aligned.all(i32 0)
  %v33 = icmp slt i64 %t, 64
  br i1 %v33, label %L34, label %L35
L34:
  %v36 = add i64 %t, 64
  %v37 = getelementptr float, ptr addrspace(3) @shared, i64 %v36
  %v38 = load float, ptr addrspace(3) %v23, align 4
  %v39 = load float, ptr addrspace(3) %v37, align 4
  %v40 = fadd float %v38, %v39
  store float %v40, ptr addrspace(3) %v23, align 4
  br label %L35
L35:
  call void @llvm.nvvm.barrier.cta.sync.aligned.all(i32 0)
  %v41 = icmp slt i64 %t, 32
  br i1 %v41, label %L42, label %L43
L42:
  %v44 = add i64 %t, 32
  %v45 = getelementptr float, ptr addrspace(3) @shared, i64 %v44
  %v46 = load float, ptr addrspace(3) %v23, align 4
  %v47 = load float, ptr addrspace(3) %v45, align 4
  %v48 = fadd float %v46, %v47
  store float %v48, ptr addrspace(3) %v23, align 4
  br label %L43
L43:
  call void @llvm.nvvm.barrier.cta.sync.aligned.all(i32 0)
  %v49 = icmp slt i64 %t, 16
  br i1 %v49, label %L50, label %L51
L50:
  %v52 = add i64 %t, 16
  %v53 = getelementptr float, ptr addrspace(3) @shared, i64 %v52
  %v54 = load float, ptr addrspace(3) %v23, align 4
  %v55 = load float, ptr addrspace(3) %v53, align 4
  %v56 = fadd float %v54, %v55
  store float %v56, ptr addrspace(3) %v23, align 4
  br label %L51
L51:
  call void @llvm.nvvm.barrier.cta.sync.aligned.all(i32 0)
  %v57 = icmp slt i64 %t, 8
  br i1 %v57, label %L58, label %L59
L58:
  %v60 = add i64 %t, 8
  %v61 = getelementptr float, ptr addrspace(3) @shared, i64 %v60
  %v62 = load float, ptr addrspace(3) %v23, align 4
  %v63 = load float, ptr addrspace(3) %v61, align 4
  %v64 = fadd float %v62, %v63
  store float %v64, ptr addrspace(3) %v23, align 4
  br label %L59
L59:
  call void @llvm.nvvm.barrier.cta.sync.aligned.all(i32 0)
  %v65 = icmp slt i64 %t, 4
  br i1 %v65, label %L66, label %L67
L66:
  %v68 = add i64 %t, 4
  %v69 = getelementptr float, ptr addrspace(3) @shared, i64 %v68
  %v70 = load float, ptr addrspace(3) %v23, align 4
  %v71 = load float, ptr addrspace(3) %v69, align 4
  %v72 = fadd float %v70, %v71
  store float %v72, ptr addrspace(3) %v23, align 4
  br label %L67
L67:
  call void @llvm.nvvm.barrier.cta.sync.aligned.all(i32 0)
  %v73 = icmp slt i64 %t, 2
  br i1 %v73, label %L74, label %L75
L74:
  %v76 = add i64 %t, 2
  %v77 = getelementptr float, ptr addrspace(3) @shared, i64 %v76
  %v78 = load float, ptr addrspace(3) %v23, align 4
  %v79 = load float, ptr addrspace(3) %v77, align 4
  %v80 = fadd float %v78, %v79
  store float %v80, ptr addrspace(3) %v23, align 4
  br label %L75
L75:
  call void @llvm.nvvm.barrier.cta.sync.aligned.all(i32 0)
  %v81 = icmp slt i64 %t, 1
  br i1 %v81, label %L82, label %L83
L82:
  %v84 = add i64 %t, 1
  %v85 = getelementptr float, ptr addrspace(3) @shared, i64 %v84
  %v86 = load float, ptr addrspace(3) %v23, align 4
  %v87 = load float, ptr addrspace(3) %v85, align 4
  %v88 = fadd float %v86, %v87
  store float %v88, ptr addrspace(3) %v23, align 4
  br label %L83
L83:
  %v89 = icmp slt i64 %t, 1
  %v90 = and i1 %v89, %v1
  br i1 %v90, label %L91, label %L92
L91:
  %v93 = load float, ptr addrspace(3) %v23, align 4
  %v94 = mul i64 %p, %results
  %v95 = add i64 %v94, %b
  %v96 = getelementptr float, ptr addrspace(1) %out, i64 %v95
  store float %v93, ptr addrspace(1) %v96, align 4
  br label %L92
L92:
  ret void
}
