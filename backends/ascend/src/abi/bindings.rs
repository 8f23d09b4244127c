// Made of backends/ascend/include/cann.h by `cargo xtask bindgen-ascend`.

pub const ACL_EVENT_SYNC: u32 = 1;
pub const ACL_EVENT_CAPTURE_STREAM_PROGRESS: u32 = 2;
pub type aclError = core::ffi::c_int;
pub type aclrtContext = *mut core::ffi::c_void;
pub type aclrtStream = *mut core::ffi::c_void;
pub type aclrtEvent = *mut core::ffi::c_void;
pub type aclmdlRI = *mut core::ffi::c_void;
pub const ACL_DT_UNDEFINED: aclDataType = -1;
pub const ACL_FLOAT: aclDataType = 0;
pub const ACL_FLOAT16: aclDataType = 1;
pub const ACL_INT8: aclDataType = 2;
pub const ACL_INT32: aclDataType = 3;
pub const ACL_UINT8: aclDataType = 4;
pub const ACL_INT64: aclDataType = 9;
pub const ACL_BOOL: aclDataType = 12;
pub const ACL_BF16: aclDataType = 27;
pub type aclDataType = core::ffi::c_int;
pub const ACL_FORMAT_UNDEFINED: aclFormat = -1;
pub const ACL_FORMAT_ND: aclFormat = 2;
pub type aclFormat = core::ffi::c_int;
pub const ACL_MEMCPY_HOST_TO_DEVICE: aclrtMemcpyKind = 1;
pub const ACL_MEMCPY_DEVICE_TO_HOST: aclrtMemcpyKind = 2;
pub const ACL_MEMCPY_DEVICE_TO_DEVICE: aclrtMemcpyKind = 3;
pub type aclrtMemcpyKind = core::ffi::c_uint;
pub const ACL_MEM_MALLOC_HUGE_FIRST: aclrtMemMallocPolicy = 0;
pub type aclrtMemMallocPolicy = core::ffi::c_uint;
pub const ACL_HBM_MEM: aclrtMemAttr = 1;
pub type aclrtMemAttr = core::ffi::c_uint;
pub const ACL_DEV_ATTR_AICORE_CORE_NUM: aclrtDevAttr = 101;
pub type aclrtDevAttr = core::ffi::c_uint;
pub const ACL_EVENT_RECORDED_STATUS_NOT_READY: aclrtEventRecordedStatus = 0;
pub const ACL_EVENT_RECORDED_STATUS_COMPLETE: aclrtEventRecordedStatus = 1;
pub type aclrtEventRecordedStatus = core::ffi::c_uint;
pub const ACL_STREAM_STATUS_COMPLETE: aclrtStreamStatus = 0;
pub const ACL_STREAM_STATUS_NOT_READY: aclrtStreamStatus = 1;
pub type aclrtStreamStatus = core::ffi::c_uint;
pub const ACL_MODEL_RI_CAPTURE_MODE_RELAXED: aclmdlRICaptureMode = 2;
pub type aclmdlRICaptureMode = core::ffi::c_uint;
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct aclTensor {
    _unused: [u8; 0],
}
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct aclTensorList {
    _unused: [u8; 0],
}
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct aclScalar {
    _unused: [u8; 0],
}
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct aclIntArray {
    _unused: [u8; 0],
}
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct aclOpExecutor {
    _unused: [u8; 0],
}
pub type aclnnStatus = i32;
pub struct Functions {
    __library: ::libloading::Library,
    pub aclInit:
        Result<unsafe extern "C" fn(configPath: *const core::ffi::c_char) -> aclError, ::libloading::Error>,
    pub aclrtGetVersion: Result<
        unsafe extern "C" fn(
            majorVersion: *mut i32,
            minorVersion: *mut i32,
            patchVersion: *mut i32,
        ) -> aclError,
        ::libloading::Error,
    >,
    pub aclrtGetSocName: Result<unsafe extern "C" fn() -> *const core::ffi::c_char, ::libloading::Error>,
    pub aclGetRecentErrMsg: Result<unsafe extern "C" fn() -> *const core::ffi::c_char, ::libloading::Error>,
    pub aclrtGetDeviceCount: Result<unsafe extern "C" fn(count: *mut u32) -> aclError, ::libloading::Error>,
    pub aclrtSetDevice: Result<unsafe extern "C" fn(deviceId: i32) -> aclError, ::libloading::Error>,
    pub aclrtGetDeviceInfo: Result<
        unsafe extern "C" fn(deviceId: u32, attr: aclrtDevAttr, value: *mut i64) -> aclError,
        ::libloading::Error,
    >,
    pub aclrtGetCurrentContext:
        Result<unsafe extern "C" fn(context: *mut aclrtContext) -> aclError, ::libloading::Error>,
    pub aclrtSetCurrentContext:
        Result<unsafe extern "C" fn(context: aclrtContext) -> aclError, ::libloading::Error>,
    pub aclrtGetMemInfo: Result<
        unsafe extern "C" fn(attr: aclrtMemAttr, free: *mut usize, total: *mut usize) -> aclError,
        ::libloading::Error,
    >,
    pub aclrtMalloc: Result<
        unsafe extern "C" fn(
            devPtr: *mut *mut core::ffi::c_void,
            size: usize,
            policy: aclrtMemMallocPolicy,
        ) -> aclError,
        ::libloading::Error,
    >,
    pub aclrtFree:
        Result<unsafe extern "C" fn(devPtr: *mut core::ffi::c_void) -> aclError, ::libloading::Error>,
    pub aclrtMallocHost: Result<
        unsafe extern "C" fn(hostPtr: *mut *mut core::ffi::c_void, size: usize) -> aclError,
        ::libloading::Error,
    >,
    pub aclrtFreeHost:
        Result<unsafe extern "C" fn(hostPtr: *mut core::ffi::c_void) -> aclError, ::libloading::Error>,
    pub aclrtMemcpyAsync: Result<
        unsafe extern "C" fn(
            dst: *mut core::ffi::c_void,
            destMax: usize,
            src: *const core::ffi::c_void,
            count: usize,
            kind: aclrtMemcpyKind,
            stream: aclrtStream,
        ) -> aclError,
        ::libloading::Error,
    >,
    pub aclrtCreateStream:
        Result<unsafe extern "C" fn(stream: *mut aclrtStream) -> aclError, ::libloading::Error>,
    pub aclrtDestroyStream:
        Result<unsafe extern "C" fn(stream: aclrtStream) -> aclError, ::libloading::Error>,
    pub aclrtSynchronizeStream:
        Result<unsafe extern "C" fn(stream: aclrtStream) -> aclError, ::libloading::Error>,
    pub aclrtCreateEventExWithFlag:
        Result<unsafe extern "C" fn(event: *mut aclrtEvent, flag: u32) -> aclError, ::libloading::Error>,
    pub aclrtDestroyEvent: Result<unsafe extern "C" fn(event: aclrtEvent) -> aclError, ::libloading::Error>,
    pub aclrtRecordEvent:
        Result<unsafe extern "C" fn(event: aclrtEvent, stream: aclrtStream) -> aclError, ::libloading::Error>,
    pub aclrtQueryEventStatus: Result<
        unsafe extern "C" fn(event: aclrtEvent, status: *mut aclrtEventRecordedStatus) -> aclError,
        ::libloading::Error,
    >,
    pub aclrtSynchronizeEventWithTimeout:
        Result<unsafe extern "C" fn(event: aclrtEvent, timeout: i32) -> aclError, ::libloading::Error>,
    pub aclrtStreamQuery: Result<
        unsafe extern "C" fn(stream: aclrtStream, status: *mut aclrtStreamStatus) -> aclError,
        ::libloading::Error,
    >,
    pub aclmdlRICaptureBegin: Result<
        unsafe extern "C" fn(stream: aclrtStream, mode: aclmdlRICaptureMode) -> aclError,
        ::libloading::Error,
    >,
    pub aclmdlRICaptureEnd: Result<
        unsafe extern "C" fn(stream: aclrtStream, modelRI: *mut aclmdlRI) -> aclError,
        ::libloading::Error,
    >,
    pub aclmdlRIExecuteAsync:
        Result<unsafe extern "C" fn(modelRI: aclmdlRI, stream: aclrtStream) -> aclError, ::libloading::Error>,
    pub aclmdlRIDestroy: Result<unsafe extern "C" fn(modelRI: aclmdlRI) -> aclError, ::libloading::Error>,
    pub aclCreateTensor: Result<
        unsafe extern "C" fn(
            viewDims: *const i64,
            viewDimsNum: u64,
            dataType: aclDataType,
            stride: *const i64,
            offset: i64,
            format: aclFormat,
            storageDims: *const i64,
            storageDimsNum: u64,
            tensorData: *mut core::ffi::c_void,
        ) -> *mut aclTensor,
        ::libloading::Error,
    >,
    pub aclDestroyTensor:
        Result<unsafe extern "C" fn(tensor: *const aclTensor) -> aclnnStatus, ::libloading::Error>,
    pub aclCreateTensorList: Result<
        unsafe extern "C" fn(value: *const *const aclTensor, size: u64) -> *mut aclTensorList,
        ::libloading::Error,
    >,
    pub aclDestroyTensorList:
        Result<unsafe extern "C" fn(array: *const aclTensorList) -> aclnnStatus, ::libloading::Error>,
    pub aclCreateIntArray:
        Result<unsafe extern "C" fn(value: *const i64, size: u64) -> *mut aclIntArray, ::libloading::Error>,
    pub aclDestroyIntArray:
        Result<unsafe extern "C" fn(array: *const aclIntArray) -> aclnnStatus, ::libloading::Error>,
    pub aclCreateScalar: Result<
        unsafe extern "C" fn(value: *mut core::ffi::c_void, dataType: aclDataType) -> *mut aclScalar,
        ::libloading::Error,
    >,
    pub aclDestroyScalar:
        Result<unsafe extern "C" fn(scalar: *const aclScalar) -> aclnnStatus, ::libloading::Error>,
    pub aclSetAclOpExecutorRepeatable:
        Result<unsafe extern "C" fn(executor: *mut aclOpExecutor) -> aclnnStatus, ::libloading::Error>,
    pub aclDestroyAclOpExecutor:
        Result<unsafe extern "C" fn(executor: *mut aclOpExecutor) -> aclnnStatus, ::libloading::Error>,
    pub aclnnAddGetWorkspaceSize: Result<
        unsafe extern "C" fn(
            self_: *const aclTensor,
            other: *const aclTensor,
            alpha: *const aclScalar,
            out: *mut aclTensor,
            workspaceSize: *mut u64,
            executor: *mut *mut aclOpExecutor,
        ) -> aclnnStatus,
        ::libloading::Error,
    >,
    pub aclnnAdd: Result<
        unsafe extern "C" fn(
            workspace: *mut core::ffi::c_void,
            workspaceSize: u64,
            executor: *mut aclOpExecutor,
            stream: aclrtStream,
        ) -> aclnnStatus,
        ::libloading::Error,
    >,
    pub aclnnMulGetWorkspaceSize: Result<
        unsafe extern "C" fn(
            self_: *const aclTensor,
            other: *const aclTensor,
            out: *mut aclTensor,
            workspaceSize: *mut u64,
            executor: *mut *mut aclOpExecutor,
        ) -> aclnnStatus,
        ::libloading::Error,
    >,
    pub aclnnMul: Result<
        unsafe extern "C" fn(
            workspace: *mut core::ffi::c_void,
            workspaceSize: u64,
            executor: *mut aclOpExecutor,
            stream: aclrtStream,
        ) -> aclnnStatus,
        ::libloading::Error,
    >,
    pub aclnnDivGetWorkspaceSize: Result<
        unsafe extern "C" fn(
            self_: *const aclTensor,
            other: *const aclTensor,
            out: *mut aclTensor,
            workspaceSize: *mut u64,
            executor: *mut *mut aclOpExecutor,
        ) -> aclnnStatus,
        ::libloading::Error,
    >,
    pub aclnnDiv: Result<
        unsafe extern "C" fn(
            workspace: *mut core::ffi::c_void,
            workspaceSize: u64,
            executor: *mut aclOpExecutor,
            stream: aclrtStream,
        ) -> aclnnStatus,
        ::libloading::Error,
    >,
    pub aclnnMulsGetWorkspaceSize: Result<
        unsafe extern "C" fn(
            self_: *const aclTensor,
            other: *const aclScalar,
            out: *mut aclTensor,
            workspaceSize: *mut u64,
            executor: *mut *mut aclOpExecutor,
        ) -> aclnnStatus,
        ::libloading::Error,
    >,
    pub aclnnMuls: Result<
        unsafe extern "C" fn(
            workspace: *mut core::ffi::c_void,
            workspaceSize: u64,
            executor: *mut aclOpExecutor,
            stream: aclrtStream,
        ) -> aclnnStatus,
        ::libloading::Error,
    >,
    pub aclnnDivsGetWorkspaceSize: Result<
        unsafe extern "C" fn(
            self_: *const aclTensor,
            other: *const aclScalar,
            out: *mut aclTensor,
            workspaceSize: *mut u64,
            executor: *mut *mut aclOpExecutor,
        ) -> aclnnStatus,
        ::libloading::Error,
    >,
    pub aclnnDivs: Result<
        unsafe extern "C" fn(
            workspace: *mut core::ffi::c_void,
            workspaceSize: u64,
            executor: *mut aclOpExecutor,
            stream: aclrtStream,
        ) -> aclnnStatus,
        ::libloading::Error,
    >,
    pub aclnnClampGetWorkspaceSize: Result<
        unsafe extern "C" fn(
            self_: *const aclTensor,
            clipValueMin: *const aclScalar,
            clipValueMax: *const aclScalar,
            out: *mut aclTensor,
            workspaceSize: *mut u64,
            executor: *mut *mut aclOpExecutor,
        ) -> aclnnStatus,
        ::libloading::Error,
    >,
    pub aclnnClamp: Result<
        unsafe extern "C" fn(
            workspace: *mut core::ffi::c_void,
            workspaceSize: u64,
            executor: *mut aclOpExecutor,
            stream: aclrtStream,
        ) -> aclnnStatus,
        ::libloading::Error,
    >,
    pub aclnnNanToNumGetWorkspaceSize: Result<
        unsafe extern "C" fn(
            self_: *const aclTensor,
            nan: f32,
            posinf: f32,
            neginf: f32,
            out: *mut aclTensor,
            workspaceSize: *mut u64,
            executor: *mut *mut aclOpExecutor,
        ) -> aclnnStatus,
        ::libloading::Error,
    >,
    pub aclnnNanToNum: Result<
        unsafe extern "C" fn(
            workspace: *mut core::ffi::c_void,
            workspaceSize: u64,
            executor: *mut aclOpExecutor,
            stream: aclrtStream,
        ) -> aclnnStatus,
        ::libloading::Error,
    >,
    pub aclnnAbsGetWorkspaceSize: Result<
        unsafe extern "C" fn(
            self_: *const aclTensor,
            out: *mut aclTensor,
            workspaceSize: *mut u64,
            executor: *mut *mut aclOpExecutor,
        ) -> aclnnStatus,
        ::libloading::Error,
    >,
    pub aclnnAbs: Result<
        unsafe extern "C" fn(
            workspace: *mut core::ffi::c_void,
            workspaceSize: u64,
            executor: *mut aclOpExecutor,
            stream: aclrtStream,
        ) -> aclnnStatus,
        ::libloading::Error,
    >,
    pub aclnnTanhGetWorkspaceSize: Result<
        unsafe extern "C" fn(
            self_: *const aclTensor,
            out: *mut aclTensor,
            workspaceSize: *mut u64,
            executor: *mut *mut aclOpExecutor,
        ) -> aclnnStatus,
        ::libloading::Error,
    >,
    pub aclnnTanh: Result<
        unsafe extern "C" fn(
            workspace: *mut core::ffi::c_void,
            workspaceSize: u64,
            executor: *mut aclOpExecutor,
            stream: aclrtStream,
        ) -> aclnnStatus,
        ::libloading::Error,
    >,
    pub aclnnSiluGetWorkspaceSize: Result<
        unsafe extern "C" fn(
            self_: *const aclTensor,
            out: *mut aclTensor,
            workspaceSize: *mut u64,
            executor: *mut *mut aclOpExecutor,
        ) -> aclnnStatus,
        ::libloading::Error,
    >,
    pub aclnnSilu: Result<
        unsafe extern "C" fn(
            workspace: *mut core::ffi::c_void,
            workspaceSize: u64,
            executor: *mut aclOpExecutor,
            stream: aclrtStream,
        ) -> aclnnStatus,
        ::libloading::Error,
    >,
    pub aclnnGeluV2GetWorkspaceSize: Result<
        unsafe extern "C" fn(
            x: *const aclTensor,
            approximate: i64,
            y: *mut aclTensor,
            workspaceSize: *mut u64,
            executor: *mut *mut aclOpExecutor,
        ) -> aclnnStatus,
        ::libloading::Error,
    >,
    pub aclnnGeluV2: Result<
        unsafe extern "C" fn(
            workspace: *mut core::ffi::c_void,
            workspaceSize: u64,
            executor: *mut aclOpExecutor,
            stream: aclrtStream,
        ) -> aclnnStatus,
        ::libloading::Error,
    >,
    pub aclnnAmaxGetWorkspaceSize: Result<
        unsafe extern "C" fn(
            self_: *const aclTensor,
            dim: *const aclIntArray,
            keepDim: bool,
            out: *mut aclTensor,
            workspaceSize: *mut u64,
            executor: *mut *mut aclOpExecutor,
        ) -> aclnnStatus,
        ::libloading::Error,
    >,
    pub aclnnAmax: Result<
        unsafe extern "C" fn(
            workspace: *mut core::ffi::c_void,
            workspaceSize: u64,
            executor: *mut aclOpExecutor,
            stream: aclrtStream,
        ) -> aclnnStatus,
        ::libloading::Error,
    >,
    pub aclnnEqTensorGetWorkspaceSize: Result<
        unsafe extern "C" fn(
            self_: *const aclTensor,
            other: *const aclTensor,
            out: *mut aclTensor,
            workspaceSize: *mut u64,
            executor: *mut *mut aclOpExecutor,
        ) -> aclnnStatus,
        ::libloading::Error,
    >,
    pub aclnnEqTensor: Result<
        unsafe extern "C" fn(
            workspace: *mut core::ffi::c_void,
            workspaceSize: u64,
            executor: *mut aclOpExecutor,
            stream: aclrtStream,
        ) -> aclnnStatus,
        ::libloading::Error,
    >,
    pub aclnnSWhereGetWorkspaceSize: Result<
        unsafe extern "C" fn(
            condition: *const aclTensor,
            self_: *const aclTensor,
            other: *const aclTensor,
            out: *mut aclTensor,
            workspaceSize: *mut u64,
            executor: *mut *mut aclOpExecutor,
        ) -> aclnnStatus,
        ::libloading::Error,
    >,
    pub aclnnSWhere: Result<
        unsafe extern "C" fn(
            workspace: *mut core::ffi::c_void,
            workspaceSize: u64,
            executor: *mut aclOpExecutor,
            stream: aclrtStream,
        ) -> aclnnStatus,
        ::libloading::Error,
    >,
    pub aclnnEmbeddingGetWorkspaceSize: Result<
        unsafe extern "C" fn(
            weight: *const aclTensor,
            indices: *const aclTensor,
            out: *const aclTensor,
            workspaceSize: *mut u64,
            executor: *mut *mut aclOpExecutor,
        ) -> aclnnStatus,
        ::libloading::Error,
    >,
    pub aclnnEmbedding: Result<
        unsafe extern "C" fn(
            workspace: *mut core::ffi::c_void,
            workspaceSize: u64,
            executor: *mut aclOpExecutor,
            stream: aclrtStream,
        ) -> aclnnStatus,
        ::libloading::Error,
    >,
    pub aclnnMatmulGetWorkspaceSize: Result<
        unsafe extern "C" fn(
            self_: *const aclTensor,
            mat2: *const aclTensor,
            out: *mut aclTensor,
            cubeMathType: i8,
            workspaceSize: *mut u64,
            executor: *mut *mut aclOpExecutor,
        ) -> aclnnStatus,
        ::libloading::Error,
    >,
    pub aclnnMatmul: Result<
        unsafe extern "C" fn(
            workspace: *mut core::ffi::c_void,
            workspaceSize: u64,
            executor: *mut aclOpExecutor,
            stream: aclrtStream,
        ) -> aclnnStatus,
        ::libloading::Error,
    >,
    pub aclnnCastGetWorkspaceSize: Result<
        unsafe extern "C" fn(
            self_: *const aclTensor,
            dtype: aclDataType,
            out: *mut aclTensor,
            workspaceSize: *mut u64,
            executor: *mut *mut aclOpExecutor,
        ) -> aclnnStatus,
        ::libloading::Error,
    >,
    pub aclnnCast: Result<
        unsafe extern "C" fn(
            workspace: *mut core::ffi::c_void,
            workspaceSize: u64,
            executor: *mut aclOpExecutor,
            stream: aclrtStream,
        ) -> aclnnStatus,
        ::libloading::Error,
    >,
    pub aclnnInplaceCopyGetWorkspaceSize: Result<
        unsafe extern "C" fn(
            selfRef: *mut aclTensor,
            src: *const aclTensor,
            workspaceSize: *mut u64,
            executor: *mut *mut aclOpExecutor,
        ) -> aclnnStatus,
        ::libloading::Error,
    >,
    pub aclnnInplaceCopy: Result<
        unsafe extern "C" fn(
            workspace: *mut core::ffi::c_void,
            workspaceSize: u64,
            executor: *mut aclOpExecutor,
            stream: aclrtStream,
        ) -> aclnnStatus,
        ::libloading::Error,
    >,
    pub aclnnSwiGluGetWorkspaceSize: Result<
        unsafe extern "C" fn(
            x: *const aclTensor,
            dim: i64,
            out: *const aclTensor,
            workspaceSize: *mut u64,
            executor: *mut *mut aclOpExecutor,
        ) -> aclnnStatus,
        ::libloading::Error,
    >,
    pub aclnnSwiGlu: Result<
        unsafe extern "C" fn(
            workspace: *mut core::ffi::c_void,
            workspaceSize: u64,
            executor: *mut aclOpExecutor,
            stream: aclrtStream,
        ) -> aclnnStatus,
        ::libloading::Error,
    >,
    pub aclnnRmsNormGetWorkspaceSize: Result<
        unsafe extern "C" fn(
            x: *const aclTensor,
            gamma: *const aclTensor,
            epsilon: f64,
            yOut: *const aclTensor,
            rstdOut: *const aclTensor,
            workspaceSize: *mut u64,
            executor: *mut *mut aclOpExecutor,
        ) -> aclnnStatus,
        ::libloading::Error,
    >,
    pub aclnnRmsNorm: Result<
        unsafe extern "C" fn(
            workspace: *mut core::ffi::c_void,
            workspaceSize: u64,
            executor: *mut aclOpExecutor,
            stream: aclrtStream,
        ) -> aclnnStatus,
        ::libloading::Error,
    >,
    pub aclnnScatterPaKvCacheGetWorkspaceSize: Result<
        unsafe extern "C" fn(
            key: *const aclTensor,
            keyCacheRef: *mut aclTensor,
            slotMapping: *const aclTensor,
            value: *const aclTensor,
            valueCacheRef: *mut aclTensor,
            compressLensOptional: *const aclTensor,
            compressSeqOffsetOptional: *const aclTensor,
            seqLensOptional: *const aclTensor,
            cacheModeOptional: *mut core::ffi::c_char,
            scatterModeOptional: *mut core::ffi::c_char,
            stridesOptional: *const aclIntArray,
            offsetsOptional: *const aclIntArray,
            workspaceSize: *mut u64,
            executor: *mut *mut aclOpExecutor,
        ) -> aclnnStatus,
        ::libloading::Error,
    >,
    pub aclnnScatterPaKvCache: Result<
        unsafe extern "C" fn(
            workspace: *mut core::ffi::c_void,
            workspaceSize: u64,
            executor: *mut aclOpExecutor,
            stream: aclrtStream,
        ) -> aclnnStatus,
        ::libloading::Error,
    >,
    pub aclnnQuantMatmulV4GetWorkspaceSize: Result<
        unsafe extern "C" fn(
            x1: *const aclTensor,
            x2: *const aclTensor,
            scale: *const aclTensor,
            offset: *const aclTensor,
            pertokenScaleOptional: *const aclTensor,
            bias: *const aclTensor,
            transposeX1: bool,
            transposeX2: bool,
            out: *const aclTensor,
            workspaceSize: *mut u64,
            executor: *mut *mut aclOpExecutor,
        ) -> aclnnStatus,
        ::libloading::Error,
    >,
    pub aclnnQuantMatmulV4: Result<
        unsafe extern "C" fn(
            workspace: *mut core::ffi::c_void,
            workspaceSize: u64,
            executor: *mut aclOpExecutor,
            stream: aclrtStream,
        ) -> aclnnStatus,
        ::libloading::Error,
    >,
    pub aclnnQuantMatmulV5GetWorkspaceSize: Result<
        unsafe extern "C" fn(
            x1: *const aclTensor,
            x2: *const aclTensor,
            x1Scale: *const aclTensor,
            x2Scale: *const aclTensor,
            yScale: *const aclTensor,
            x1Offset: *const aclTensor,
            x2Offset: *const aclTensor,
            yOffset: *const aclTensor,
            bias: *const aclTensor,
            transposeX1: bool,
            transposeX2: bool,
            groupSize: i64,
            out: *mut aclTensor,
            workspaceSize: *mut u64,
            executor: *mut *mut aclOpExecutor,
        ) -> aclnnStatus,
        ::libloading::Error,
    >,
    pub aclnnQuantMatmulV5: Result<
        unsafe extern "C" fn(
            workspace: *mut core::ffi::c_void,
            workspaceSize: u64,
            executor: *mut aclOpExecutor,
            stream: aclrtStream,
        ) -> aclnnStatus,
        ::libloading::Error,
    >,
    pub aclnnGroupedMatmulV5GetWorkspaceSize: Result<
        unsafe extern "C" fn(
            x: *const aclTensorList,
            weight: *const aclTensorList,
            biasOptional: *const aclTensorList,
            scaleOptional: *const aclTensorList,
            offsetOptional: *const aclTensorList,
            antiquantScaleOptional: *const aclTensorList,
            antiquantOffsetOptional: *const aclTensorList,
            perTokenScaleOptional: *const aclTensorList,
            groupListOptional: *const aclTensor,
            activationInputOptional: *const aclTensorList,
            activationQuantScaleOptional: *const aclTensorList,
            activationQuantOffsetOptional: *const aclTensorList,
            splitItem: i64,
            groupType: i64,
            groupListType: i64,
            actType: i64,
            tuningConfigOptional: *mut aclIntArray,
            out: *mut aclTensorList,
            activationFeatureOutOptional: *mut aclTensorList,
            dynQuantScaleOutOptional: *mut aclTensorList,
            workspaceSize: *mut u64,
            executor: *mut *mut aclOpExecutor,
        ) -> aclnnStatus,
        ::libloading::Error,
    >,
    pub aclnnGroupedMatmulV5: Result<
        unsafe extern "C" fn(
            workspace: *mut core::ffi::c_void,
            workspaceSize: u64,
            executor: *mut aclOpExecutor,
            stream: aclrtStream,
        ) -> aclnnStatus,
        ::libloading::Error,
    >,
    pub aclnnFusedInferAttentionScoreV3GetWorkspaceSize: Result<
        unsafe extern "C" fn(
            query: *const aclTensor,
            key: *const aclTensorList,
            value: *const aclTensorList,
            pseShiftOptional: *const aclTensor,
            attenMaskOptional: *const aclTensor,
            actualSeqLengthsOptional: *const aclIntArray,
            actualSeqLengthsKvOptional: *const aclIntArray,
            deqScale1Optional: *const aclTensor,
            quantScale1Optional: *const aclTensor,
            deqScale2Optional: *const aclTensor,
            quantScale2Optional: *const aclTensor,
            quantOffset2Optional: *const aclTensor,
            antiquantScaleOptional: *const aclTensor,
            antiquantOffsetOptional: *const aclTensor,
            blockTableOptional: *const aclTensor,
            queryPaddingSizeOptional: *const aclTensor,
            kvPaddingSizeOptional: *const aclTensor,
            keyAntiquantScaleOptional: *const aclTensor,
            keyAntiquantOffsetOptional: *const aclTensor,
            valueAntiquantScaleOptional: *const aclTensor,
            valueAntiquantOffsetOptional: *const aclTensor,
            keySharedPrefixOptional: *const aclTensor,
            valueSharedPrefixOptional: *const aclTensor,
            actualSharedPrefixLenOptional: *const aclIntArray,
            queryRopeOptional: *const aclTensor,
            keyRopeOptional: *const aclTensor,
            keyRopeAntiquantScaleOptional: *const aclTensor,
            numHeads: i64,
            scaleValue: f64,
            preTokens: i64,
            nextTokens: i64,
            inputLayout: *mut core::ffi::c_char,
            numKeyValueHeads: i64,
            sparseMode: i64,
            innerPrecise: i64,
            blockSize: i64,
            antiquantMode: i64,
            softmaxLseFlag: bool,
            keyAntiquantMode: i64,
            valueAntiquantMode: i64,
            attentionOut: *const aclTensor,
            softmaxLse: *const aclTensor,
            workspaceSize: *mut u64,
            executor: *mut *mut aclOpExecutor,
        ) -> aclnnStatus,
        ::libloading::Error,
    >,
    pub aclnnFusedInferAttentionScoreV3: Result<
        unsafe extern "C" fn(
            workspace: *mut core::ffi::c_void,
            workspaceSize: u64,
            executor: *mut aclOpExecutor,
            stream: aclrtStream,
        ) -> aclnnStatus,
        ::libloading::Error,
    >,
    pub aclnnFusedInferAttentionScoreV4GetWorkspaceSize: Result<
        unsafe extern "C" fn(
            query: *const aclTensor,
            key: *const aclTensorList,
            value: *const aclTensorList,
            pseShiftOptional: *const aclTensor,
            attenMaskOptional: *const aclTensor,
            actualSeqLengthsOptional: *const aclIntArray,
            actualSeqLengthsKvOptional: *const aclIntArray,
            deqScale1Optional: *const aclTensor,
            quantScale1Optional: *const aclTensor,
            deqScale2Optional: *const aclTensor,
            quantScale2Optional: *const aclTensor,
            quantOffset2Optional: *const aclTensor,
            antiquantScaleOptional: *const aclTensor,
            antiquantOffsetOptional: *const aclTensor,
            blockTableOptional: *const aclTensor,
            queryPaddingSizeOptional: *const aclTensor,
            kvPaddingSizeOptional: *const aclTensor,
            keyAntiquantScaleOptional: *const aclTensor,
            keyAntiquantOffsetOptional: *const aclTensor,
            valueAntiquantScaleOptional: *const aclTensor,
            valueAntiquantOffsetOptional: *const aclTensor,
            keySharedPrefixOptional: *const aclTensor,
            valueSharedPrefixOptional: *const aclTensor,
            actualSharedPrefixLenOptional: *const aclIntArray,
            queryRopeOptional: *const aclTensor,
            keyRopeOptional: *const aclTensor,
            keyRopeAntiquantScaleOptional: *const aclTensor,
            dequantScaleQueryOptional: *const aclTensor,
            learnableSinkOptional: *const aclTensor,
            numHeads: i64,
            scaleValue: f64,
            preTokens: i64,
            nextTokens: i64,
            inputLayout: *mut core::ffi::c_char,
            numKeyValueHeads: i64,
            sparseMode: i64,
            innerPrecise: i64,
            blockSize: i64,
            antiquantMode: i64,
            softmaxLseFlag: bool,
            keyAntiquantMode: i64,
            valueAntiquantMode: i64,
            queryQuantMode: i64,
            attentionOut: *const aclTensor,
            softmaxLse: *const aclTensor,
            workspaceSize: *mut u64,
            executor: *mut *mut aclOpExecutor,
        ) -> aclnnStatus,
        ::libloading::Error,
    >,
    pub aclnnFusedInferAttentionScoreV4: Result<
        unsafe extern "C" fn(
            workspace: *mut core::ffi::c_void,
            workspaceSize: u64,
            executor: *mut aclOpExecutor,
            stream: aclrtStream,
        ) -> aclnnStatus,
        ::libloading::Error,
    >,
    pub aclnnApplyRotaryPosEmbV2GetWorkspaceSize: Result<
        unsafe extern "C" fn(
            queryRef: *mut aclTensor,
            keyRef: *mut aclTensor,
            cos: *const aclTensor,
            sin: *const aclTensor,
            layout: i64,
            rotaryMode: *mut core::ffi::c_char,
            workspaceSize: *mut u64,
            executor: *mut *mut aclOpExecutor,
        ) -> aclnnStatus,
        ::libloading::Error,
    >,
    pub aclnnApplyRotaryPosEmbV2: Result<
        unsafe extern "C" fn(
            workspace: *mut core::ffi::c_void,
            workspaceSize: u64,
            executor: *mut aclOpExecutor,
            stream: aclrtStream,
        ) -> aclnnStatus,
        ::libloading::Error,
    >,
}
impl Functions {
    pub unsafe fn from_library<L>(library: L) -> Result<Self, ::libloading::Error>
    where
        L: Into<::libloading::Library>,
    {
        let __library = library.into();
        let aclInit = unsafe { __library.get(b"aclInit\0") }.map(|sym| *sym);
        let aclrtGetVersion = unsafe { __library.get(b"aclrtGetVersion\0") }.map(|sym| *sym);
        let aclrtGetSocName = unsafe { __library.get(b"aclrtGetSocName\0") }.map(|sym| *sym);
        let aclGetRecentErrMsg = unsafe { __library.get(b"aclGetRecentErrMsg\0") }.map(|sym| *sym);
        let aclrtGetDeviceCount = unsafe { __library.get(b"aclrtGetDeviceCount\0") }.map(|sym| *sym);
        let aclrtSetDevice = unsafe { __library.get(b"aclrtSetDevice\0") }.map(|sym| *sym);
        let aclrtGetDeviceInfo = unsafe { __library.get(b"aclrtGetDeviceInfo\0") }.map(|sym| *sym);
        let aclrtGetCurrentContext = unsafe { __library.get(b"aclrtGetCurrentContext\0") }.map(|sym| *sym);
        let aclrtSetCurrentContext = unsafe { __library.get(b"aclrtSetCurrentContext\0") }.map(|sym| *sym);
        let aclrtGetMemInfo = unsafe { __library.get(b"aclrtGetMemInfo\0") }.map(|sym| *sym);
        let aclrtMalloc = unsafe { __library.get(b"aclrtMalloc\0") }.map(|sym| *sym);
        let aclrtFree = unsafe { __library.get(b"aclrtFree\0") }.map(|sym| *sym);
        let aclrtMallocHost = unsafe { __library.get(b"aclrtMallocHost\0") }.map(|sym| *sym);
        let aclrtFreeHost = unsafe { __library.get(b"aclrtFreeHost\0") }.map(|sym| *sym);
        let aclrtMemcpyAsync = unsafe { __library.get(b"aclrtMemcpyAsync\0") }.map(|sym| *sym);
        let aclrtCreateStream = unsafe { __library.get(b"aclrtCreateStream\0") }.map(|sym| *sym);
        let aclrtDestroyStream = unsafe { __library.get(b"aclrtDestroyStream\0") }.map(|sym| *sym);
        let aclrtSynchronizeStream = unsafe { __library.get(b"aclrtSynchronizeStream\0") }.map(|sym| *sym);
        let aclrtCreateEventExWithFlag =
            unsafe { __library.get(b"aclrtCreateEventExWithFlag\0") }.map(|sym| *sym);
        let aclrtDestroyEvent = unsafe { __library.get(b"aclrtDestroyEvent\0") }.map(|sym| *sym);
        let aclrtRecordEvent = unsafe { __library.get(b"aclrtRecordEvent\0") }.map(|sym| *sym);
        let aclrtQueryEventStatus = unsafe { __library.get(b"aclrtQueryEventStatus\0") }.map(|sym| *sym);
        let aclrtSynchronizeEventWithTimeout =
            unsafe { __library.get(b"aclrtSynchronizeEventWithTimeout\0") }.map(|sym| *sym);
        let aclrtStreamQuery = unsafe { __library.get(b"aclrtStreamQuery\0") }.map(|sym| *sym);
        let aclmdlRICaptureBegin = unsafe { __library.get(b"aclmdlRICaptureBegin\0") }.map(|sym| *sym);
        let aclmdlRICaptureEnd = unsafe { __library.get(b"aclmdlRICaptureEnd\0") }.map(|sym| *sym);
        let aclmdlRIExecuteAsync = unsafe { __library.get(b"aclmdlRIExecuteAsync\0") }.map(|sym| *sym);
        let aclmdlRIDestroy = unsafe { __library.get(b"aclmdlRIDestroy\0") }.map(|sym| *sym);
        let aclCreateTensor = unsafe { __library.get(b"aclCreateTensor\0") }.map(|sym| *sym);
        let aclDestroyTensor = unsafe { __library.get(b"aclDestroyTensor\0") }.map(|sym| *sym);
        let aclCreateTensorList = unsafe { __library.get(b"aclCreateTensorList\0") }.map(|sym| *sym);
        let aclDestroyTensorList = unsafe { __library.get(b"aclDestroyTensorList\0") }.map(|sym| *sym);
        let aclCreateIntArray = unsafe { __library.get(b"aclCreateIntArray\0") }.map(|sym| *sym);
        let aclDestroyIntArray = unsafe { __library.get(b"aclDestroyIntArray\0") }.map(|sym| *sym);
        let aclCreateScalar = unsafe { __library.get(b"aclCreateScalar\0") }.map(|sym| *sym);
        let aclDestroyScalar = unsafe { __library.get(b"aclDestroyScalar\0") }.map(|sym| *sym);
        let aclSetAclOpExecutorRepeatable =
            unsafe { __library.get(b"aclSetAclOpExecutorRepeatable\0") }.map(|sym| *sym);
        let aclDestroyAclOpExecutor = unsafe { __library.get(b"aclDestroyAclOpExecutor\0") }.map(|sym| *sym);
        let aclnnAddGetWorkspaceSize =
            unsafe { __library.get(b"aclnnAddGetWorkspaceSize\0") }.map(|sym| *sym);
        let aclnnAdd = unsafe { __library.get(b"aclnnAdd\0") }.map(|sym| *sym);
        let aclnnMulGetWorkspaceSize =
            unsafe { __library.get(b"aclnnMulGetWorkspaceSize\0") }.map(|sym| *sym);
        let aclnnMul = unsafe { __library.get(b"aclnnMul\0") }.map(|sym| *sym);
        let aclnnDivGetWorkspaceSize =
            unsafe { __library.get(b"aclnnDivGetWorkspaceSize\0") }.map(|sym| *sym);
        let aclnnDiv = unsafe { __library.get(b"aclnnDiv\0") }.map(|sym| *sym);
        let aclnnMulsGetWorkspaceSize =
            unsafe { __library.get(b"aclnnMulsGetWorkspaceSize\0") }.map(|sym| *sym);
        let aclnnMuls = unsafe { __library.get(b"aclnnMuls\0") }.map(|sym| *sym);
        let aclnnDivsGetWorkspaceSize =
            unsafe { __library.get(b"aclnnDivsGetWorkspaceSize\0") }.map(|sym| *sym);
        let aclnnDivs = unsafe { __library.get(b"aclnnDivs\0") }.map(|sym| *sym);
        let aclnnClampGetWorkspaceSize =
            unsafe { __library.get(b"aclnnClampGetWorkspaceSize\0") }.map(|sym| *sym);
        let aclnnClamp = unsafe { __library.get(b"aclnnClamp\0") }.map(|sym| *sym);
        let aclnnNanToNumGetWorkspaceSize =
            unsafe { __library.get(b"aclnnNanToNumGetWorkspaceSize\0") }.map(|sym| *sym);
        let aclnnNanToNum = unsafe { __library.get(b"aclnnNanToNum\0") }.map(|sym| *sym);
        let aclnnAbsGetWorkspaceSize =
            unsafe { __library.get(b"aclnnAbsGetWorkspaceSize\0") }.map(|sym| *sym);
        let aclnnAbs = unsafe { __library.get(b"aclnnAbs\0") }.map(|sym| *sym);
        let aclnnTanhGetWorkspaceSize =
            unsafe { __library.get(b"aclnnTanhGetWorkspaceSize\0") }.map(|sym| *sym);
        let aclnnTanh = unsafe { __library.get(b"aclnnTanh\0") }.map(|sym| *sym);
        let aclnnSiluGetWorkspaceSize =
            unsafe { __library.get(b"aclnnSiluGetWorkspaceSize\0") }.map(|sym| *sym);
        let aclnnSilu = unsafe { __library.get(b"aclnnSilu\0") }.map(|sym| *sym);
        let aclnnGeluV2GetWorkspaceSize =
            unsafe { __library.get(b"aclnnGeluV2GetWorkspaceSize\0") }.map(|sym| *sym);
        let aclnnGeluV2 = unsafe { __library.get(b"aclnnGeluV2\0") }.map(|sym| *sym);
        let aclnnAmaxGetWorkspaceSize =
            unsafe { __library.get(b"aclnnAmaxGetWorkspaceSize\0") }.map(|sym| *sym);
        let aclnnAmax = unsafe { __library.get(b"aclnnAmax\0") }.map(|sym| *sym);
        let aclnnEqTensorGetWorkspaceSize =
            unsafe { __library.get(b"aclnnEqTensorGetWorkspaceSize\0") }.map(|sym| *sym);
        let aclnnEqTensor = unsafe { __library.get(b"aclnnEqTensor\0") }.map(|sym| *sym);
        let aclnnSWhereGetWorkspaceSize =
            unsafe { __library.get(b"aclnnSWhereGetWorkspaceSize\0") }.map(|sym| *sym);
        let aclnnSWhere = unsafe { __library.get(b"aclnnSWhere\0") }.map(|sym| *sym);
        let aclnnEmbeddingGetWorkspaceSize =
            unsafe { __library.get(b"aclnnEmbeddingGetWorkspaceSize\0") }.map(|sym| *sym);
        let aclnnEmbedding = unsafe { __library.get(b"aclnnEmbedding\0") }.map(|sym| *sym);
        let aclnnMatmulGetWorkspaceSize =
            unsafe { __library.get(b"aclnnMatmulGetWorkspaceSize\0") }.map(|sym| *sym);
        let aclnnMatmul = unsafe { __library.get(b"aclnnMatmul\0") }.map(|sym| *sym);
        let aclnnCastGetWorkspaceSize =
            unsafe { __library.get(b"aclnnCastGetWorkspaceSize\0") }.map(|sym| *sym);
        let aclnnCast = unsafe { __library.get(b"aclnnCast\0") }.map(|sym| *sym);
        let aclnnInplaceCopyGetWorkspaceSize =
            unsafe { __library.get(b"aclnnInplaceCopyGetWorkspaceSize\0") }.map(|sym| *sym);
        let aclnnInplaceCopy = unsafe { __library.get(b"aclnnInplaceCopy\0") }.map(|sym| *sym);
        let aclnnSwiGluGetWorkspaceSize =
            unsafe { __library.get(b"aclnnSwiGluGetWorkspaceSize\0") }.map(|sym| *sym);
        let aclnnSwiGlu = unsafe { __library.get(b"aclnnSwiGlu\0") }.map(|sym| *sym);
        let aclnnRmsNormGetWorkspaceSize =
            unsafe { __library.get(b"aclnnRmsNormGetWorkspaceSize\0") }.map(|sym| *sym);
        let aclnnRmsNorm = unsafe { __library.get(b"aclnnRmsNorm\0") }.map(|sym| *sym);
        let aclnnScatterPaKvCacheGetWorkspaceSize =
            unsafe { __library.get(b"aclnnScatterPaKvCacheGetWorkspaceSize\0") }.map(|sym| *sym);
        let aclnnScatterPaKvCache = unsafe { __library.get(b"aclnnScatterPaKvCache\0") }.map(|sym| *sym);
        let aclnnQuantMatmulV4GetWorkspaceSize =
            unsafe { __library.get(b"aclnnQuantMatmulV4GetWorkspaceSize\0") }.map(|sym| *sym);
        let aclnnQuantMatmulV4 = unsafe { __library.get(b"aclnnQuantMatmulV4\0") }.map(|sym| *sym);
        let aclnnQuantMatmulV5GetWorkspaceSize =
            unsafe { __library.get(b"aclnnQuantMatmulV5GetWorkspaceSize\0") }.map(|sym| *sym);
        let aclnnQuantMatmulV5 = unsafe { __library.get(b"aclnnQuantMatmulV5\0") }.map(|sym| *sym);
        let aclnnGroupedMatmulV5GetWorkspaceSize =
            unsafe { __library.get(b"aclnnGroupedMatmulV5GetWorkspaceSize\0") }.map(|sym| *sym);
        let aclnnGroupedMatmulV5 = unsafe { __library.get(b"aclnnGroupedMatmulV5\0") }.map(|sym| *sym);
        let aclnnFusedInferAttentionScoreV3GetWorkspaceSize =
            unsafe { __library.get(b"aclnnFusedInferAttentionScoreV3GetWorkspaceSize\0") }.map(|sym| *sym);
        let aclnnFusedInferAttentionScoreV3 =
            unsafe { __library.get(b"aclnnFusedInferAttentionScoreV3\0") }.map(|sym| *sym);
        let aclnnFusedInferAttentionScoreV4GetWorkspaceSize =
            unsafe { __library.get(b"aclnnFusedInferAttentionScoreV4GetWorkspaceSize\0") }.map(|sym| *sym);
        let aclnnFusedInferAttentionScoreV4 =
            unsafe { __library.get(b"aclnnFusedInferAttentionScoreV4\0") }.map(|sym| *sym);
        let aclnnApplyRotaryPosEmbV2GetWorkspaceSize =
            unsafe { __library.get(b"aclnnApplyRotaryPosEmbV2GetWorkspaceSize\0") }.map(|sym| *sym);
        let aclnnApplyRotaryPosEmbV2 =
            unsafe { __library.get(b"aclnnApplyRotaryPosEmbV2\0") }.map(|sym| *sym);
        Ok(Functions {
            __library,
            aclInit,
            aclrtGetVersion,
            aclrtGetSocName,
            aclGetRecentErrMsg,
            aclrtGetDeviceCount,
            aclrtSetDevice,
            aclrtGetDeviceInfo,
            aclrtGetCurrentContext,
            aclrtSetCurrentContext,
            aclrtGetMemInfo,
            aclrtMalloc,
            aclrtFree,
            aclrtMallocHost,
            aclrtFreeHost,
            aclrtMemcpyAsync,
            aclrtCreateStream,
            aclrtDestroyStream,
            aclrtSynchronizeStream,
            aclrtCreateEventExWithFlag,
            aclrtDestroyEvent,
            aclrtRecordEvent,
            aclrtQueryEventStatus,
            aclrtSynchronizeEventWithTimeout,
            aclrtStreamQuery,
            aclmdlRICaptureBegin,
            aclmdlRICaptureEnd,
            aclmdlRIExecuteAsync,
            aclmdlRIDestroy,
            aclCreateTensor,
            aclDestroyTensor,
            aclCreateTensorList,
            aclDestroyTensorList,
            aclCreateIntArray,
            aclDestroyIntArray,
            aclCreateScalar,
            aclDestroyScalar,
            aclSetAclOpExecutorRepeatable,
            aclDestroyAclOpExecutor,
            aclnnAddGetWorkspaceSize,
            aclnnAdd,
            aclnnMulGetWorkspaceSize,
            aclnnMul,
            aclnnDivGetWorkspaceSize,
            aclnnDiv,
            aclnnMulsGetWorkspaceSize,
            aclnnMuls,
            aclnnDivsGetWorkspaceSize,
            aclnnDivs,
            aclnnClampGetWorkspaceSize,
            aclnnClamp,
            aclnnNanToNumGetWorkspaceSize,
            aclnnNanToNum,
            aclnnAbsGetWorkspaceSize,
            aclnnAbs,
            aclnnTanhGetWorkspaceSize,
            aclnnTanh,
            aclnnSiluGetWorkspaceSize,
            aclnnSilu,
            aclnnGeluV2GetWorkspaceSize,
            aclnnGeluV2,
            aclnnAmaxGetWorkspaceSize,
            aclnnAmax,
            aclnnEqTensorGetWorkspaceSize,
            aclnnEqTensor,
            aclnnSWhereGetWorkspaceSize,
            aclnnSWhere,
            aclnnEmbeddingGetWorkspaceSize,
            aclnnEmbedding,
            aclnnMatmulGetWorkspaceSize,
            aclnnMatmul,
            aclnnCastGetWorkspaceSize,
            aclnnCast,
            aclnnInplaceCopyGetWorkspaceSize,
            aclnnInplaceCopy,
            aclnnSwiGluGetWorkspaceSize,
            aclnnSwiGlu,
            aclnnRmsNormGetWorkspaceSize,
            aclnnRmsNorm,
            aclnnScatterPaKvCacheGetWorkspaceSize,
            aclnnScatterPaKvCache,
            aclnnQuantMatmulV4GetWorkspaceSize,
            aclnnQuantMatmulV4,
            aclnnQuantMatmulV5GetWorkspaceSize,
            aclnnQuantMatmulV5,
            aclnnGroupedMatmulV5GetWorkspaceSize,
            aclnnGroupedMatmulV5,
            aclnnFusedInferAttentionScoreV3GetWorkspaceSize,
            aclnnFusedInferAttentionScoreV3,
            aclnnFusedInferAttentionScoreV4GetWorkspaceSize,
            aclnnFusedInferAttentionScoreV4,
            aclnnApplyRotaryPosEmbV2GetWorkspaceSize,
            aclnnApplyRotaryPosEmbV2,
        })
    }
}
