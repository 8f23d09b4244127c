use super::*;

#[test]
fn host_weights_are_held_against_their_spec() {
    let spec = LinearSpec::w8a8(4, 2);
    let q = [0i8; 8];
    let check = |q: &[i8], scales: &[f32]| HostWeights::Int8PerChannel { q, scales }.check(&spec).map(|_| ());
    assert!(check(&q, &[1.0, 2.0]).is_ok());
    assert!(check(&q[1..], &[1.0, 2.0]).is_err());
    assert!(check(&q, &[1.0]).is_err());
    for bad in [0.0, -1.0, f32::NAN, f32::INFINITY] {
        let error = check(&q, &[1.0, bad]).unwrap_err();
        assert!(error.to_string().contains("row 1"), "{error}");
    }
    assert!(HostWeights::F32(&[0.0; 8]).check(&spec).is_err(), "another format");
}

#[test]
fn groups_have_a_scale_each_and_the_last_may_be_short() {
    let spec = LinearSpec::w8a8(40, 2).with_weights(WeightFormat::Int8PerGroup { group_size: 16 });
    let check = |scales: &[f32], group_size| {
        let weights = HostWeights::Int8PerGroup { q: &[0; 80], scales, group_size };
        weights.check(&spec).map(|_| ()).map_err(|error| error.to_string())
    };
    assert!(check(&[1.0; 6], 16).is_ok());
    assert!(check(&[1.0; 5], 16).is_err());
    assert!(check(&[1.0; 6], 32).is_err(), "another group than the spec's");
    let error = check(&[1.0, 1.0, 1.0, 1.0, f32::NAN, 1.0], 16).unwrap_err();
    assert!(error.contains("row 1"), "{error}");
}

#[test]
fn four_bits_are_four_bits() {
    let spec = |offset| LinearSpec::float(16, 1, WeightFormat::Int4PerGroup { group_size: 16, offset });
    let check = |value, offsets: GroupOffsets<'_>| {
        let weights = HostWeights::Int4PerGroup { q: &[value; 16], scales: &[1.0], offsets, group_size: 16 };
        weights.check(&spec(offsets.format())).is_ok()
    };
    assert!(check(-8, GroupOffsets::Symmetric) && check(7, GroupOffsets::Symmetric));
    assert!(!check(-9, GroupOffsets::Symmetric) && !check(8, GroupOffsets::Symmetric));
    assert!(check(15, GroupOffsets::ZeroPoints(&[15])) && !check(15, GroupOffsets::ZeroPoints(&[16])));
    assert!(!check(-1, GroupOffsets::ZeroPoints(&[0])) && !check(0, GroupOffsets::ZeroPoints(&[])));
    assert!(check(0, GroupOffsets::Mins(&[-1.0])) && !check(0, GroupOffsets::Mins(&[f32::NAN])));
}

#[test]
fn blocks_fill_rows_and_hold_numbers() {
    let spec = LinearSpec::float(64, 1, WeightFormat::Q4_0);
    let mut blocks = vec![0u8; 36];
    assert!(HostWeights::Q4_0(&blocks).check(&spec).is_ok());
    assert!(HostWeights::Q4_0(&blocks[1..]).check(&spec).is_err());
    assert!(HostWeights::Q4_1(&blocks).check(&spec).is_err());
    blocks[19] = 0x7C;
    let error = HostWeights::Q4_0(&blocks).check(&spec).unwrap_err().to_string();
    assert!(error.contains("finite") && error.contains('1'), "{error}");
    assert!(LinearSpec::float(48, 1, WeightFormat::Q4_0).check().is_err());
    assert!(LinearSpec::float(128, 1, WeightFormat::Q4K).check().is_err());
}
