@shared = internal addrspace(3) global [256 x double] undef, align 16

declare i32 @llvm.nvvm.read.ptx.sreg.tid.x()
declare i32 @llvm.nvvm.read.ptx.sreg.ctaid.x()
declare i32 @llvm.nvvm.read.ptx.sreg.ctaid.y()
declare i32 @llvm.nvvm.read.ptx.sreg.ctaid.z()
declare i32 @llvm.nvvm.read.ptx.sreg.ntid.x()
declare i32 @llvm.nvvm.read.ptx.sreg.nctaid.x()
declare void @llvm.nvvm.barrier.cta.sync.aligned.all(i32)

define ptx_kernel void @reduce_max_double_1_2_columns(ptr addrspace(1) %a, ptr addrspace(1) %out, i64 %results, i64 %count, i64 %parts, i64 %od0, i64 %os0, i64 %id0, i64 %id1, i64 %is0, i64 %is1) {
entry:
  %m8 = alloca double, align 64
  %m16 = alloca i64, align 64
  %t32 = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %t = zext i32 %t32 to i64
  %b32 = call i32 @llvm.nvvm.read.ptx.sreg.ctaid.x()
  %b = zext i32 %b32 to i64
  %p32 = call i32 @llvm.nvvm.read.ptx.sreg.ctaid.y()
  %p = zext i32 %p32 to i64
  %v1 = srem i64 %t, 32
  %v2 = sdiv i64 %t, 32
  %v3 = mul i64 %b, 32
  %v4 = add i64 %v3, %v1
  %v5 = icmp slt i64 %v4, %results
  %v6 = mul i64 %v4, %os0
  %v7 = add i64 0, %v6
  store double 0xFFF0000000000000, ptr %m8
  %v9 = select i1 %v5, i64 %count, i64 0
  %v10 = mul i64 %p, 8
  %v11 = add i64 %v2, %v10
  %v12 = mul i64 %parts, 8
  store i64 %v11, ptr %m16
  br label %L13
L13:
  %v17 = load i64, ptr %m16
  %v18 = icmp slt i64 %v17, %v9
  br i1 %v18, label %L14, label %L15
L14:
  %v19 = sdiv i64 %v17, %id1
  %v20 = mul i64 %v19, %id1
  %v21 = sub i64 %v17, %v20
  %v22 = mul i64 %v21, %is1
  %v23 = add i64 0, %v22
  %v24 = mul i64 %v19, %is0
  %v25 = add i64 %v23, %v24
  %v26 = add i64 %v7, %v25
  %v27 = getelementptr double, ptr addrspace(1) %a, i64 %v26
  %v28 = load double, ptr addrspace(1) %v27, align 8
  %v29 = load double, ptr %m8
  %v30 = fcmp ule double %v29, %v28
  %v31 = select i1 %v30, double %v28, double %v29
  %v32 = fcmp uno double %v29, %v29
  %v33 = select i1 %v32, double %v29, double %v31
  store double %v33, ptr %m8
  %v34 = add i64 %v17, %v12
  store i64 %v34, ptr %m16
  br label %L13
L15:
  %v35 = getelementptr double, ptr addrspace(3) @shared, i64 %t
  %v36 = load double, ptr %m8
  store double %v36, ptr addrspace(3) %v35, align 8
  call void @llvm.nvvm.barrier.cta.sync.aligned.all(i32 0)
  %v37 = icmp slt i64 %t, 128
  br i1 %v37, label %L38, label %L39
L38:
  %v40 = add i64 %t, 128
  %v41 = getelementptr double, ptr addrspace(3) @shared, i64 %v40
  %v42 = load double, ptr addrspace(3) %v35, align 8
  %v43 = load double, ptr addrspace(3) %v41, align 8
  %v44 = fcmp ule double %v42, %v43
  %v45 = select i1 %v44, double %v43, double %v42
  %v46 = fcmp uno double %v42, %v42
  %v47 = select i1 %v46, double %v42, double %v45
  store double %v47, ptr addrspace(3) %v35, align 8
  br label %L39
L39:
  call void @llvm.nvvm.barrier.cta.sync.aligned.all(i32 0)
  %v48 = icmp slt i64 %t, 64
  br i1 %v48, label %L49, label %L50
L49:
  %v51 = add i64 %t, 64
  %v52 = getelementptr double, ptr addrspace(3) @shared, i64 %v51
  %v53 = load double, ptr addrspace(3) %v35, align 8
  %v54 = load double, ptr addrspace(3) %v52, align 8
  %v55 = fcmp ule double %v53, %v54
  %v56 = select i1 %v55, double %v54, double %v53
  %v57 = fcmp uno double %v53, %v53
  %v58 = select i1 %v57, double %v53, double %v56
  store double %v58, ptr addrspace(3) %v35, align 8
  br label %L50
L50:
  call void @llvm.nvvm.barrier.cta.sync.aligned.all(i32 0)
  %v59 = icmp slt i64 %t, 32
  br i1 %v59, label %L60, label %L61
L60:
  %v62 = add i64 %t, 32
  %v63 = getelementptr double, ptr addrspace(3) @shared, i64 %v62
  %v64 = load double, ptr addrspace(3) %v35, align 8
  %v65 = load double, ptr addrspace(3) %v63, align 8
  %v66 = fcmp ule double %v64, %v65
  %v67 = select i1 %v66, double %v65, double %v64
  %v68 = fcmp uno double %v64, %v64
  %v69 = select i1 %v68, double %v64, double %v67
  store double %v69, ptr addrspace(3) %v35, align 8
  br label %L61
L61:
  %v70 = icmp slt i64 %t, 32
  %v71 = and i1 %v70, %v5
  br i1 %v71, label %L72, label %L73
L72:
  %v74 = load double, ptr addrspace(3) %v35, align 8
  %v75 = mul i64 %p, %results
  %v76 = add i64 %v75, %v4
  %v77 = getelementptr double, ptr addrspace(1) %out, i64 %v76
  store double %v74, ptr addrspace(1) %v77, align 8
  br label %L73
L73:
  ret void
}
