// Findings as people count them: what befalls several ranks of a run, or several GPUs, is one, which says where.
//
// grouped([{kind: "TrainingNonFinite", run: "a", rank: "0", …}, {…, rank: "1"}])
// -> [{kind: "TrainingNonFinite", run: "a", ranks: ["0", "1"], members: [{…}, {…}], …}]

import { secondsOf } from "./format.js";

const TOGETHER_SECONDS = 120;

export function grouped(findings) {
  const groups = [];
  for (const finding of findings) {
    const group = groups.find((members) => belongs(members[0], finding));
    if (group) group.push(finding);
    else groups.push([finding]);
  }
  return groups.map(asOne);
}

// Several of one kind that began together; those that have neither rank nor GPU differ in something else.
function belongs(first, finding) {
  if (["kind", "severity", "source", "instance", "run", "state", "part"].some((name) => first[name] !== finding[name]))
    return false;
  if (isNone(finding.rank) && isNone(finding.gpu)) return false;
  return Math.abs(secondsOf(first.opened) - secondsOf(finding.opened)) <= TOGETHER_SECONDS;
}

const isNone = (value) => value === undefined || value === null || value === "";

function asOne(members) {
  const [first] = members;
  const places = (name) =>
    [...new Set(members.map((one) => one[name]).filter((value) => !isNone(value)))].sort((a, b) => a - b);
  const only = (name) => (places(name).length === 1 ? places(name)[0] : undefined);
  return {
    ...first,
    members,
    rank: only("rank"),
    gpu: only("gpu"),
    uuid: only("uuid"),
    ranks: places("rank"),
    gpus: places("gpu"),
    opened: members.map((one) => one.opened).sort()[0],
    evidence: [...differing(members), ...members.flatMap((one) => one.evidence ?? [])],
    acknowledged: members.every((one) => one.acknowledged) ? first.acknowledged : null,
    silenced: members.every((one) => one.silenced) ? first.silenced : null,
  };
}

// What the others say, where they say something else than the first.
function differing(members) {
  const said = new Set([members[0].what]);
  return members.filter((one) => !said.has(one.what) && said.add(one.what)).map((one) => ({ ...one, kind: undefined }));
}
