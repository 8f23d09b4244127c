// What Halite calls of CANN's C interface, and nothing else. Written by hand from the public documentation of CANN and of its
// operator repositories (ops-nn, ops-math, ops-transformer); `cargo xtask bindgen-ascend` makes src/abi/bindings.rs of it, and
// the step `ascend-header` compiles it together with acl/acl.h: a signature that differs from CANN's is an error there.
#ifndef HALITE_CANN_H
#define HALITE_CANN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

// Types that acl/acl.h has too. C allows a typedef twice where both mean the same.
typedef int aclError;
typedef void *aclrtContext;
typedef void *aclrtStream;
typedef void *aclrtEvent;
typedef void *aclmdlRI;

// What an event is for: flags. C allows a macro twice where both are the same.
#define ACL_EVENT_SYNC 0x00000001U
#define ACL_EVENT_CAPTURE_STREAM_PROGRESS 0x00000002U

// Enumerations cannot be declared twice, so they are left to acl/acl.h where it is there. Only members that are used stand here.
#ifndef HALITE_WITH_ACL
typedef enum aclDataType {
    ACL_DT_UNDEFINED = -1,
    ACL_FLOAT = 0,
    ACL_FLOAT16 = 1,
    ACL_INT8 = 2,
    ACL_INT32 = 3,
    ACL_UINT8 = 4,
    ACL_INT64 = 9,
    ACL_BOOL = 12,
    ACL_BF16 = 27,
} aclDataType;

typedef enum aclFormat {
    ACL_FORMAT_UNDEFINED = -1,
    ACL_FORMAT_ND = 2,
} aclFormat;

typedef enum aclrtMemcpyKind {
    ACL_MEMCPY_HOST_TO_DEVICE = 1,
    ACL_MEMCPY_DEVICE_TO_HOST = 2,
    ACL_MEMCPY_DEVICE_TO_DEVICE = 3,
} aclrtMemcpyKind;

typedef enum aclrtMemMallocPolicy {
    ACL_MEM_MALLOC_HUGE_FIRST = 0,
} aclrtMemMallocPolicy;

typedef enum aclrtMemAttr {
    ACL_HBM_MEM = 1,
} aclrtMemAttr;

typedef enum aclrtDevAttr {
    ACL_DEV_ATTR_AICORE_CORE_NUM = 101,
} aclrtDevAttr;

typedef enum aclrtEventRecordedStatus {
    ACL_EVENT_RECORDED_STATUS_NOT_READY = 0,
    ACL_EVENT_RECORDED_STATUS_COMPLETE = 1,
} aclrtEventRecordedStatus;

typedef enum aclrtStreamStatus {
    ACL_STREAM_STATUS_COMPLETE = 0,
    ACL_STREAM_STATUS_NOT_READY = 1,
} aclrtStreamStatus;

typedef enum aclmdlRICaptureMode {
    ACL_MODEL_RI_CAPTURE_MODE_RELAXED = 2,
} aclmdlRICaptureMode;
#endif

// Run time: libascendcl.so.
aclError aclInit(const char *configPath);
aclError aclrtGetVersion(int32_t *majorVersion, int32_t *minorVersion, int32_t *patchVersion);
const char *aclrtGetSocName(void);
const char *aclGetRecentErrMsg(void);
aclError aclrtGetDeviceCount(uint32_t *count);
aclError aclrtSetDevice(int32_t deviceId);
aclError aclrtGetDeviceInfo(uint32_t deviceId, aclrtDevAttr attr, int64_t *value);
aclError aclrtGetCurrentContext(aclrtContext *context);
aclError aclrtSetCurrentContext(aclrtContext context);
aclError aclrtGetMemInfo(aclrtMemAttr attr, size_t *free, size_t *total);
aclError aclrtMalloc(void **devPtr, size_t size, aclrtMemMallocPolicy policy);
aclError aclrtFree(void *devPtr);
aclError aclrtMallocHost(void **hostPtr, size_t size);
aclError aclrtFreeHost(void *hostPtr);
aclError aclrtMemcpyAsync(void *dst, size_t destMax, const void *src, size_t count, aclrtMemcpyKind kind, aclrtStream stream);
aclError aclrtCreateStream(aclrtStream *stream);
aclError aclrtDestroyStream(aclrtStream stream);
aclError aclrtSynchronizeStream(aclrtStream stream);
aclError aclrtCreateEventExWithFlag(aclrtEvent *event, uint32_t flag);
aclError aclrtDestroyEvent(aclrtEvent event);
aclError aclrtRecordEvent(aclrtEvent event, aclrtStream stream);
aclError aclrtQueryEventStatus(aclrtEvent event, aclrtEventRecordedStatus *status);
aclError aclrtSynchronizeEventWithTimeout(aclrtEvent event, int32_t timeout);
aclError aclrtStreamQuery(aclrtStream stream, aclrtStreamStatus *status);
aclError aclmdlRICaptureBegin(aclrtStream stream, aclmdlRICaptureMode mode);
aclError aclmdlRICaptureEnd(aclrtStream stream, aclmdlRI *modelRI);
aclError aclmdlRIExecuteAsync(aclmdlRI modelRI, aclrtStream stream);
aclError aclmdlRIDestroy(aclmdlRI modelRI);

// Descriptors: libnnopbase.so.
typedef struct aclTensor aclTensor;
typedef struct aclTensorList aclTensorList;
typedef struct aclScalar aclScalar;
typedef struct aclIntArray aclIntArray;
typedef struct aclOpExecutor aclOpExecutor;
typedef int32_t aclnnStatus;

aclTensor *aclCreateTensor(const int64_t *viewDims, uint64_t viewDimsNum, aclDataType dataType, const int64_t *stride,
                           int64_t offset, aclFormat format, const int64_t *storageDims, uint64_t storageDimsNum,
                           void *tensorData);
aclnnStatus aclDestroyTensor(const aclTensor *tensor);
aclTensorList *aclCreateTensorList(const aclTensor *const *value, uint64_t size);
aclnnStatus aclDestroyTensorList(const aclTensorList *array);
aclIntArray *aclCreateIntArray(const int64_t *value, uint64_t size);
aclnnStatus aclDestroyIntArray(const aclIntArray *array);
aclScalar *aclCreateScalar(void *value, aclDataType dataType);
aclnnStatus aclDestroyScalar(const aclScalar *scalar);
aclnnStatus aclSetAclOpExecutorRepeatable(aclOpExecutor *executor);
aclnnStatus aclDestroyAclOpExecutor(aclOpExecutor *executor);

// Operators, in two phases: the first plans and tells the workspace, the second queues. libopapi.so and its parts.
aclnnStatus aclnnAddGetWorkspaceSize(const aclTensor *self, const aclTensor *other, const aclScalar *alpha, aclTensor *out,
                                     uint64_t *workspaceSize, aclOpExecutor **executor);
aclnnStatus aclnnAdd(void *workspace, uint64_t workspaceSize, aclOpExecutor *executor, aclrtStream stream);

aclnnStatus aclnnMulGetWorkspaceSize(const aclTensor *self, const aclTensor *other, aclTensor *out, uint64_t *workspaceSize,
                                     aclOpExecutor **executor);
aclnnStatus aclnnMul(void *workspace, uint64_t workspaceSize, aclOpExecutor *executor, aclrtStream stream);

aclnnStatus aclnnDivGetWorkspaceSize(const aclTensor *self, const aclTensor *other, aclTensor *out, uint64_t *workspaceSize,
                                     aclOpExecutor **executor);
aclnnStatus aclnnDiv(void *workspace, uint64_t workspaceSize, aclOpExecutor *executor, aclrtStream stream);

aclnnStatus aclnnMulsGetWorkspaceSize(const aclTensor *self, const aclScalar *other, aclTensor *out, uint64_t *workspaceSize,
                                      aclOpExecutor **executor);
aclnnStatus aclnnMuls(void *workspace, uint64_t workspaceSize, aclOpExecutor *executor, aclrtStream stream);

aclnnStatus aclnnDivsGetWorkspaceSize(const aclTensor *self, const aclScalar *other, aclTensor *out, uint64_t *workspaceSize,
                                      aclOpExecutor **executor);
aclnnStatus aclnnDivs(void *workspace, uint64_t workspaceSize, aclOpExecutor *executor, aclrtStream stream);

aclnnStatus aclnnClampGetWorkspaceSize(const aclTensor *self, const aclScalar *clipValueMin, const aclScalar *clipValueMax,
                                       aclTensor *out, uint64_t *workspaceSize, aclOpExecutor **executor);
aclnnStatus aclnnClamp(void *workspace, uint64_t workspaceSize, aclOpExecutor *executor, aclrtStream stream);

aclnnStatus aclnnNanToNumGetWorkspaceSize(const aclTensor *self, float nan, float posinf, float neginf, aclTensor *out,
                                          uint64_t *workspaceSize, aclOpExecutor **executor);
aclnnStatus aclnnNanToNum(void *workspace, uint64_t workspaceSize, aclOpExecutor *executor, aclrtStream stream);

aclnnStatus aclnnAbsGetWorkspaceSize(const aclTensor *self, aclTensor *out, uint64_t *workspaceSize, aclOpExecutor **executor);
aclnnStatus aclnnAbs(void *workspace, uint64_t workspaceSize, aclOpExecutor *executor, aclrtStream stream);

aclnnStatus aclnnTanhGetWorkspaceSize(const aclTensor *self, aclTensor *out, uint64_t *workspaceSize,
                                      aclOpExecutor **executor);
aclnnStatus aclnnTanh(void *workspace, uint64_t workspaceSize, aclOpExecutor *executor, aclrtStream stream);

aclnnStatus aclnnSiluGetWorkspaceSize(const aclTensor *self, aclTensor *out, uint64_t *workspaceSize,
                                      aclOpExecutor **executor);
aclnnStatus aclnnSilu(void *workspace, uint64_t workspaceSize, aclOpExecutor *executor, aclrtStream stream);

aclnnStatus aclnnGeluV2GetWorkspaceSize(const aclTensor *x, int64_t approximate, aclTensor *y, uint64_t *workspaceSize,
                                        aclOpExecutor **executor);
aclnnStatus aclnnGeluV2(void *workspace, uint64_t workspaceSize, aclOpExecutor *executor, aclrtStream stream);

aclnnStatus aclnnAmaxGetWorkspaceSize(const aclTensor *self, const aclIntArray *dim, bool keepDim, aclTensor *out,
                                      uint64_t *workspaceSize, aclOpExecutor **executor);
aclnnStatus aclnnAmax(void *workspace, uint64_t workspaceSize, aclOpExecutor *executor, aclrtStream stream);

aclnnStatus aclnnEqTensorGetWorkspaceSize(const aclTensor *self, const aclTensor *other, aclTensor *out,
                                          uint64_t *workspaceSize, aclOpExecutor **executor);
aclnnStatus aclnnEqTensor(void *workspace, uint64_t workspaceSize, aclOpExecutor *executor, aclrtStream stream);

aclnnStatus aclnnSWhereGetWorkspaceSize(const aclTensor *condition, const aclTensor *self, const aclTensor *other,
                                        aclTensor *out, uint64_t *workspaceSize, aclOpExecutor **executor);
aclnnStatus aclnnSWhere(void *workspace, uint64_t workspaceSize, aclOpExecutor *executor, aclrtStream stream);

aclnnStatus aclnnEmbeddingGetWorkspaceSize(const aclTensor *weight, const aclTensor *indices, const aclTensor *out,
                                           uint64_t *workspaceSize, aclOpExecutor **executor);
aclnnStatus aclnnEmbedding(void *workspace, uint64_t workspaceSize, aclOpExecutor *executor, aclrtStream stream);

aclnnStatus aclnnMatmulGetWorkspaceSize(const aclTensor *self, const aclTensor *mat2, aclTensor *out, int8_t cubeMathType,
                                        uint64_t *workspaceSize, aclOpExecutor **executor);
aclnnStatus aclnnMatmul(void *workspace, uint64_t workspaceSize, aclOpExecutor *executor, aclrtStream stream);

aclnnStatus aclnnCastGetWorkspaceSize(const aclTensor *self, const aclDataType dtype, aclTensor *out, uint64_t *workspaceSize,
                                      aclOpExecutor **executor);
aclnnStatus aclnnCast(void *workspace, uint64_t workspaceSize, aclOpExecutor *executor, aclrtStream stream);

aclnnStatus aclnnInplaceCopyGetWorkspaceSize(aclTensor *selfRef, const aclTensor *src, uint64_t *workspaceSize,
                                             aclOpExecutor **executor);
aclnnStatus aclnnInplaceCopy(void *workspace, uint64_t workspaceSize, aclOpExecutor *executor, aclrtStream stream);

aclnnStatus aclnnSwiGluGetWorkspaceSize(const aclTensor *x, int64_t dim, const aclTensor *out, uint64_t *workspaceSize,
                                        aclOpExecutor **executor);
aclnnStatus aclnnSwiGlu(void *workspace, uint64_t workspaceSize, aclOpExecutor *executor, aclrtStream stream);

aclnnStatus aclnnRmsNormGetWorkspaceSize(const aclTensor *x, const aclTensor *gamma, double epsilon, const aclTensor *yOut,
                                         const aclTensor *rstdOut, uint64_t *workspaceSize, aclOpExecutor **executor);
aclnnStatus aclnnRmsNorm(void *workspace, uint64_t workspaceSize, aclOpExecutor *executor, aclrtStream stream);

aclnnStatus aclnnScatterPaKvCacheGetWorkspaceSize(const aclTensor *key, aclTensor *keyCacheRef, const aclTensor *slotMapping,
                                                  const aclTensor *value, aclTensor *valueCacheRef,
                                                  const aclTensor *compressLensOptional,
                                                  const aclTensor *compressSeqOffsetOptional,
                                                  const aclTensor *seqLensOptional, char *cacheModeOptional,
                                                  char *scatterModeOptional, const aclIntArray *stridesOptional,
                                                  const aclIntArray *offsetsOptional, uint64_t *workspaceSize,
                                                  aclOpExecutor **executor);
aclnnStatus aclnnScatterPaKvCache(void *workspace, uint64_t workspaceSize, aclOpExecutor *executor, aclrtStream stream);

aclnnStatus aclnnQuantMatmulV4GetWorkspaceSize(const aclTensor *x1, const aclTensor *x2, const aclTensor *scale,
                                               const aclTensor *offset, const aclTensor *pertokenScaleOptional,
                                               const aclTensor *bias, bool transposeX1, bool transposeX2,
                                               const aclTensor *out, uint64_t *workspaceSize, aclOpExecutor **executor);
aclnnStatus aclnnQuantMatmulV4(void *workspace, uint64_t workspaceSize, aclOpExecutor *executor, aclrtStream stream);

aclnnStatus aclnnQuantMatmulV5GetWorkspaceSize(const aclTensor *x1, const aclTensor *x2, const aclTensor *x1Scale,
                                               const aclTensor *x2Scale, const aclTensor *yScale, const aclTensor *x1Offset,
                                               const aclTensor *x2Offset, const aclTensor *yOffset, const aclTensor *bias,
                                               bool transposeX1, bool transposeX2, int64_t groupSize, aclTensor *out,
                                               uint64_t *workspaceSize, aclOpExecutor **executor);
aclnnStatus aclnnQuantMatmulV5(void *workspace, uint64_t workspaceSize, aclOpExecutor *executor, aclrtStream stream);

aclnnStatus aclnnGroupedMatmulV5GetWorkspaceSize(const aclTensorList *x, const aclTensorList *weight,
                                                 const aclTensorList *biasOptional, const aclTensorList *scaleOptional,
                                                 const aclTensorList *offsetOptional,
                                                 const aclTensorList *antiquantScaleOptional,
                                                 const aclTensorList *antiquantOffsetOptional,
                                                 const aclTensorList *perTokenScaleOptional,
                                                 const aclTensor *groupListOptional,
                                                 const aclTensorList *activationInputOptional,
                                                 const aclTensorList *activationQuantScaleOptional,
                                                 const aclTensorList *activationQuantOffsetOptional, int64_t splitItem,
                                                 int64_t groupType, int64_t groupListType, int64_t actType,
                                                 aclIntArray *tuningConfigOptional, aclTensorList *out,
                                                 aclTensorList *activationFeatureOutOptional,
                                                 aclTensorList *dynQuantScaleOutOptional, uint64_t *workspaceSize,
                                                 aclOpExecutor **executor);
aclnnStatus aclnnGroupedMatmulV5(void *workspace, uint64_t workspaceSize, aclOpExecutor *executor, aclrtStream stream);

aclnnStatus aclnnFusedInferAttentionScoreV3GetWorkspaceSize(const aclTensor *query, const aclTensorList *key,
                                                            const aclTensorList *value, const aclTensor *pseShiftOptional,
                                                            const aclTensor *attenMaskOptional,
                                                            const aclIntArray *actualSeqLengthsOptional,
                                                            const aclIntArray *actualSeqLengthsKvOptional,
                                                            const aclTensor *deqScale1Optional,
                                                            const aclTensor *quantScale1Optional,
                                                            const aclTensor *deqScale2Optional,
                                                            const aclTensor *quantScale2Optional,
                                                            const aclTensor *quantOffset2Optional,
                                                            const aclTensor *antiquantScaleOptional,
                                                            const aclTensor *antiquantOffsetOptional,
                                                            const aclTensor *blockTableOptional,
                                                            const aclTensor *queryPaddingSizeOptional,
                                                            const aclTensor *kvPaddingSizeOptional,
                                                            const aclTensor *keyAntiquantScaleOptional,
                                                            const aclTensor *keyAntiquantOffsetOptional,
                                                            const aclTensor *valueAntiquantScaleOptional,
                                                            const aclTensor *valueAntiquantOffsetOptional,
                                                            const aclTensor *keySharedPrefixOptional,
                                                            const aclTensor *valueSharedPrefixOptional,
                                                            const aclIntArray *actualSharedPrefixLenOptional,
                                                            const aclTensor *queryRopeOptional,
                                                            const aclTensor *keyRopeOptional,
                                                            const aclTensor *keyRopeAntiquantScaleOptional, int64_t numHeads,
                                                            double scaleValue, int64_t preTokens, int64_t nextTokens,
                                                            char *inputLayout, int64_t numKeyValueHeads, int64_t sparseMode,
                                                            int64_t innerPrecise, int64_t blockSize, int64_t antiquantMode,
                                                            bool softmaxLseFlag, int64_t keyAntiquantMode,
                                                            int64_t valueAntiquantMode, const aclTensor *attentionOut,
                                                            const aclTensor *softmaxLse, uint64_t *workspaceSize,
                                                            aclOpExecutor **executor);
aclnnStatus aclnnFusedInferAttentionScoreV3(void *workspace, uint64_t workspaceSize, aclOpExecutor *executor,
                                            aclrtStream stream);

aclnnStatus aclnnFusedInferAttentionScoreV4GetWorkspaceSize(const aclTensor *query, const aclTensorList *key,
                                                            const aclTensorList *value, const aclTensor *pseShiftOptional,
                                                            const aclTensor *attenMaskOptional,
                                                            const aclIntArray *actualSeqLengthsOptional,
                                                            const aclIntArray *actualSeqLengthsKvOptional,
                                                            const aclTensor *deqScale1Optional,
                                                            const aclTensor *quantScale1Optional,
                                                            const aclTensor *deqScale2Optional,
                                                            const aclTensor *quantScale2Optional,
                                                            const aclTensor *quantOffset2Optional,
                                                            const aclTensor *antiquantScaleOptional,
                                                            const aclTensor *antiquantOffsetOptional,
                                                            const aclTensor *blockTableOptional,
                                                            const aclTensor *queryPaddingSizeOptional,
                                                            const aclTensor *kvPaddingSizeOptional,
                                                            const aclTensor *keyAntiquantScaleOptional,
                                                            const aclTensor *keyAntiquantOffsetOptional,
                                                            const aclTensor *valueAntiquantScaleOptional,
                                                            const aclTensor *valueAntiquantOffsetOptional,
                                                            const aclTensor *keySharedPrefixOptional,
                                                            const aclTensor *valueSharedPrefixOptional,
                                                            const aclIntArray *actualSharedPrefixLenOptional,
                                                            const aclTensor *queryRopeOptional,
                                                            const aclTensor *keyRopeOptional,
                                                            const aclTensor *keyRopeAntiquantScaleOptional,
                                                            const aclTensor *dequantScaleQueryOptional,
                                                            const aclTensor *learnableSinkOptional, int64_t numHeads,
                                                            double scaleValue, int64_t preTokens, int64_t nextTokens,
                                                            char *inputLayout, int64_t numKeyValueHeads, int64_t sparseMode,
                                                            int64_t innerPrecise, int64_t blockSize, int64_t antiquantMode,
                                                            bool softmaxLseFlag, int64_t keyAntiquantMode,
                                                            int64_t valueAntiquantMode, int64_t queryQuantMode,
                                                            const aclTensor *attentionOut, const aclTensor *softmaxLse,
                                                            uint64_t *workspaceSize, aclOpExecutor **executor);
aclnnStatus aclnnFusedInferAttentionScoreV4(void *workspace, uint64_t workspaceSize, aclOpExecutor *executor,
                                            aclrtStream stream);

aclnnStatus aclnnApplyRotaryPosEmbV2GetWorkspaceSize(aclTensor *queryRef, aclTensor *keyRef, const aclTensor *cos,
                                                     const aclTensor *sin, int64_t layout, char *rotaryMode,
                                                     uint64_t *workspaceSize, aclOpExecutor **executor);
aclnnStatus aclnnApplyRotaryPosEmbV2(void *workspace, uint64_t workspaceSize, aclOpExecutor *executor, aclrtStream stream);

#ifdef __cplusplus
}
#endif

#endif
