"""OpenVINO GenAI's continuous batching on a .gguf file: prefill and decode, as `halite bench model` measures them.

    python openvino_genai_bench.py MODEL.gguf [--prompt 512] [--generate 128] [--batch 1] [--runs 5] [--threads 2]

prints one line of JSON. Prefill is the time until every prompt has its first token, decode the rest, until every prompt has
G tokens more. One run before the measured ones warms up.
"""

import pathlib
import time

import openvino
import openvino_genai
import rates


def main():
    options = rates.options(__doc__, batched_tokens=4096)
    scheduler = openvino_genai.SchedulerConfig()
    scheduler.max_num_batched_tokens = options.batched_tokens
    scheduler.max_num_seqs = max(options.batch, 1)
    scheduler.enable_prefix_caching = False
    properties = {"INFERENCE_NUM_THREADS": options.threads}
    pipeline = openvino_genai.ContinuousBatchingPipeline(options.model, scheduler, "CPU", properties)
    generation = openvino_genai.GenerationConfig()
    generation.max_new_tokens = options.generate + 1
    generation.ignore_eos = True
    generation.do_sample = False

    def run():
        start = time.perf_counter()
        handles = []
        for number, prompt in enumerate(rates.prompts(options)):
            handles.append(pipeline.add_request(number, openvino.Tensor(prompt[None]), generation))
        counts = [0] * len(handles)
        first = None
        while pipeline.has_non_finished_requests():
            pipeline.step()
            for index, handle in enumerate(handles):
                while handle.can_read():
                    counts[index] += sum(len(output.generated_ids) for output in handle.read().values())
            if first is None and min(counts) > 0:
                first, at_first = time.perf_counter(), sum(counts)
        end = time.perf_counter()
        assert counts == [options.generate + 1] * options.batch, counts
        return first - start, end - first, sum(counts) - at_first

    weights = pathlib.Path(options.model).stem.rsplit("-", 1)[-1]
    rates.report("openvino-genai", weights, options, run)


if __name__ == "__main__":
    main()
