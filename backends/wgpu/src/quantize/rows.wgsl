// Rows to integers, a team a row. A row's values are asked for as often as they are needed: for its range, and to be written.
// SCALES says where scales come from: `rows::Scales` has the numbers.

// Columns `start..end` of a row, by one of GROUP_LANES: each writes words of the output, or the bytes of a word that are the
// row's.
fn write(place: Place, source: Source, steps: Steps, start: u32, end: u32, lane: u32) {
    let first = q_at(place.outer * im.q_outer + place.inner * im.q_inner + start);
    let last = first + (end - start);
    for (var word = first / 4u + lane; word * 4u < last; word += GROUP_LANES) {
        let at = clamp(word * 4u + vec4(0u, 1u, 2u, 3u), vec4(first), vec4(last - 1u));
        let y = four_prepared(place, source, start + (at - first));
        let bits = word_of(y, steps);
        if at.w - at.x == 3u {
            atomicStore(&q_words[word], bits);
        } else {
            let mask = ((1u << (8u * (at.w - at.x + 1u))) - 1u) << (8u * (at.x & 3u));
            atomicXor(&q_words[word], (atomicLoad(&q_words[word]) ^ bits) & mask);
        }
    }
}

@compute @workgroup_size(256)
fn main(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
) {
    let number = linear_group(group, groups);
    let place = place_of(number, lane);
    let source = open_row(place, lane);
    if HAS_KEPT && place.there {
        for (var which = place.lane; which < im.aside; which += ROW_LANES) {
            let column = outliers(which);
            var y = 0.0f;
            if column >= 0 && u32(column) < im.columns {
                y = smoothed(four_values(place, source, vec4(u32(column))).x, u32(column));
            }
            set_kept(place.outer * im.kept_outer + place.inner * im.kept_inner + which, y);
        }
    }
    var steps: Steps;
    if SCALES == 1u {
        let at = given_at(source);
        steps = given_steps(scales(at), zeros(at));
    } else if SCALES == 2u {
        let all = team_max(lane, 256u, vec2(ranges(2u * lane), ranges(2u * lane + 1u)));
        steps = steps_of(all);
        if number == 0u && lane == 0u {
            set_scales(0u, steps.scale);
            set_zeros(0u, steps.zero);
        }
    }
    let group_lane = place.lane % GROUP_LANES;
    for (var turn = 0u; turn < im.groups; turn += ROW_LANES / GROUP_LANES) {
        let which = turn + place.lane / GROUP_LANES;
        let start = which * im.group;
        let end = min(start + im.group, im.columns);
        let here = place.there && which < im.groups;
        if SCALES == 0u {
            steps = steps_of(team_max(lane, GROUP_LANES, range_of(place, source, start, end, group_lane, GROUP_LANES)));
            if here && group_lane == 0u {
                set_scales(place.outer * im.scales_outer + place.inner * im.scales_inner + which, steps.scale);
                set_zeros(place.outer * im.zeros_outer + place.inner * im.zeros_inner + which, steps.zero);
            }
        }
        if here && start < end {
            write(place, source, steps, start, end, group_lane);
        }
    }
}
