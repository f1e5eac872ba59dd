// A step of a line that has changed is drawn anew.

export function touch(step) {
  step.rev += 1;
  return step;
}
