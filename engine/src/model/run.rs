//! The decoder as a [`Runner`]: a step's tables in, what was wanted of its rows out.

use super::decoder::Decoder;
use crate::runner::{Adjustment, ModelInfo, Runner, StepBatch, StepLimits, StepOutput};
use crate::{EngineError, Result};
use halite_hal::{Error, Pending, Stream};
use halite_kernels::attention::AttentionStep;
use halite_kernels::cache::{BlockExport, BlockImport, SlotMapping};
use halite_kernels::rope::Positions;
use halite_kernels::sampling::{LogProbArgs, SamplingArgs, SamplingParams, SamplingPlan, SamplingStep};
use halite_kernels::{Backend, Tensor};

impl<B: Backend> Runner for Decoder<B> {
    fn info(&self) -> &ModelInfo {
        &self.info
    }

    fn limits(&self) -> StepLimits {
        self.limits
    }

    fn step(&mut self, batch: &StepBatch) -> Result<StepOutput> {
        let ids = self.check(batch)?;
        if ids.is_empty() {
            return Ok(StepOutput::default());
        }
        self.update(batch)?;
        self.forward(&ids)?;
        let mut out = StepOutput::default();
        let asked: Vec<_> = (0..batch.samples.len()).map(|sample| batch.adjustments.get(&sample)).collect();
        let rows = self.max_output_rows;
        for (wanted, asked) in batch.samples.chunks(rows).zip(asked.chunks(rows)) {
            self.sample(wanted, asked, &mut out.tokens)?;
        }
        for wanted in batch.log_probs.chunks(self.max_output_rows) {
            self.log_probs(wanted, &mut out.log_probs)?;
        }
        for rows in batch.logits.chunks(self.max_output_rows) {
            out.logits.extend(self.logits(rows)?.to_vec::<f32>(&mut self.stream)?);
        }
        if batch.samples.is_empty() && batch.log_probs.is_empty() && batch.logits.is_empty() {
            // Nothing was read back, which would have handed the work over.
            self.stream.submit()?;
        }
        Ok(out)
    }

    fn export_blocks(&mut self, blocks: &[u32]) -> Result<Vec<u8>> {
        let export = BlockExport { cache: &self.cache, blocks }.check()?;
        Ok(self.device.cache_export(&mut self.stream, export)?.wait()?)
    }

    fn import_blocks(&mut self, blocks: &[u32], bytes: &[u8]) -> Result<()> {
        let import = BlockImport { cache: &self.cache, blocks, bytes }.check()?;
        Ok(self.device.cache_import(&mut self.stream, import)?)
    }
}

impl<B: Backend> Decoder<B> {
    /// Checks what no operator checks; returns the token ids as operators take them.
    fn check(&self, batch: &StepBatch) -> Result<Vec<i32>> {
        let (rows, vocabulary) = (batch.tokens.len(), self.info.vocabulary);
        for (argument, expected, got) in [
            ("positions", rows, batch.positions.len()),
            ("slot_mapping", rows, batch.slot_mapping.len()),
            ("last of cu_seqlens", rows, batch.cu_seqlens.last().map_or(0, |&last| last as usize)),
            ("block_tables", batch.sequences(), batch.block_tables.len()),
        ] {
            if got != expected {
                return Err(refused(argument, expected.to_string(), got));
            }
        }
        let wanted = batch.samples.iter().map(|(row, _)| *row);
        let wanted =
            wanted.chain(batch.log_probs.iter().map(|(row, _)| *row)).chain(batch.logits.iter().copied());
        if let Some(row) = wanted.max().filter(|&row| row >= rows) {
            return Err(refused("wanted row", format!("below {rows}"), row));
        }
        let targets = batch.log_probs.iter().map(|(_, token)| token);
        if let Some((index, &id)) =
            batch.tokens.iter().chain(targets).enumerate().find(|(_, id)| **id as usize >= vocabulary)
        {
            return Err(EngineError::UnknownToken { index, id, vocabulary });
        }
        // A vocabulary fits into I32: the readers of model files bound it.
        Ok(batch.tokens.iter().map(|&id| id as i32).collect())
    }

    /// Uploads the step's tables.
    fn update(&mut self, batch: &StepBatch) -> Result<()> {
        let (device, stream, plans) = (&self.device, &mut self.stream, &mut self.plans);
        let slots = SlotMapping { slots: &batch.slot_mapping }.check(&plans.slots)?;
        device.slots_update(stream, &mut plans.slots, &slots)?;
        let width = plans.max_blocks_per_sequence;
        plans.block_table.clear();
        plans.block_table.resize(batch.sequences() * width, -1);
        for (row, blocks) in plans.block_table.chunks_exact_mut(width).zip(&batch.block_tables) {
            if blocks.len() > width {
                return Err(refused("blocks of a sequence", format!("at most {width}"), blocks.len()));
            }
            for (entry, &block) in row.iter_mut().zip(blocks) {
                *entry = i32::try_from(block).unwrap_or(i32::MAX);
            }
        }
        let step = AttentionStep {
            cu_seqlens: &batch.cu_seqlens,
            kv_lens: &batch.kv_lens,
            kv_ranges: &[],
            block_table: &plans.block_table,
            tree_parents: &[],
        };
        for kind in &mut plans.kinds {
            let positions = Positions { positions: &batch.positions }.check(&kind.rope)?;
            device.rope_update(stream, &mut kind.rope, &positions)?;
            let step = step.check(&kind.attention)?;
            device.attention_update(stream, &mut kind.attention, &step)?;
        }
        Ok(())
    }

    fn sample(
        &mut self,
        wanted: &[(usize, SamplingParams)],
        asked: &[Option<&Adjustment>],
        tokens: &mut Vec<u32>,
    ) -> Result<()> {
        let rows: Vec<usize> = wanted.iter().map(|(row, _)| *row).collect();
        let params: Vec<SamplingParams> = wanted.iter().map(|(_, params)| params.clone()).collect();
        let logits = self.logits(&rows)?.narrow(1, 0..self.plans.sampling.spec().vocabulary)?;
        self.adjust(&logits, asked)?;
        let (device, stream, plan) = (&self.device, &mut self.stream, &mut self.plans.sampling);
        let step = SamplingStep { params: &params }.check(plan)?;
        device.sampling_update(stream, plan, &step)?;
        let ids = self.output.tokens.narrow(0, 0..rows.len())?;
        device.sample(stream, SamplingArgs { plan, logits: &logits, ids: &ids }.check()?)?;
        // Ids are within the vocabulary, so never negative.
        tokens.extend(ids.to_vec::<i32>(stream)?.into_iter().map(i32::unsigned_abs));
        Ok(())
    }

    fn log_probs(&mut self, wanted: &[(usize, u32)], log_probs: &mut Vec<f32>) -> Result<()> {
        let rows: Vec<usize> = wanted.iter().map(|(row, _)| *row).collect();
        let ids: Vec<i32> = wanted.iter().map(|(_, token)| *token as i32).collect();
        let logits = self.logits(&rows)?;
        let narrow = |tensor: &Tensor<B>| tensor.narrow(0, 0..rows.len());
        let (targets, out) = (narrow(&self.output.tokens)?, narrow(&self.output.log_probs)?);
        targets.write(&mut self.stream, &ids)?;
        let args = LogProbArgs { logits: &logits, targets: &targets, out: &out, top: None, all: None };
        self.device.log_probs(&mut self.stream, args.check()?)?;
        log_probs.extend(out.to_vec::<f32>(&mut self.stream)?);
        Ok(())
    }
}

fn refused(argument: &'static str, expected: String, got: usize) -> EngineError {
    Error::Argument { operator: "step", argument, expected, got: got.to_string() }.into()
}
