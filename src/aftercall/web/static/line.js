// The audio of a call in the page: the microphone as 8 kHz μ-law, and the agent's μ-law as sound.
// Messages in: bytes to play, a name to return once everything before it was played, or null, which
// drops what is unplayed. Messages out: 20 ms of the microphone, or such a name.
const LINE_HZ = 8000;
const FRAME_BYTES = 160;
const BIAS = 132;

function toMulaw(sample) {
  const sign = sample < 0 ? 128 : 0;
  const size = Math.min(Math.abs(sample) * 32768, 32635) + BIAS;
  const exponent = Math.floor(Math.log2(size)) - 7;
  return ~(sign | (exponent << 4) | ((size >> (exponent + 3)) & 15)) & 255;
}

function fromMulaw(byte) {
  const bits = ~byte & 255;
  const size = (((bits & 15) << 3) + BIAS) << ((bits >> 4) & 7);
  return (bits & 128 ? BIAS - size : size - BIAS) / 32768;
}

registerProcessor("line", class extends AudioWorkletProcessor {
  queue = [];  // bytes and names, in their order
  place = 0;  // in the first bytes of the queue, between two samples of the line
  sum = 0;
  count = 0;
  phase = 0;
  frame = new Uint8Array(FRAME_BYTES);
  filled = 0;

  constructor() {
    super();
    this.port.onmessage = ({ data }) => {
      if (data === null) {
        this.queue = [];
        this.place = 0;
      } else this.queue.push(data);
    };
  }

  // Averages what the microphone gave during one sample of the line.
  record(samples) {
    for (const sample of samples) {
      this.sum += sample;
      this.count += 1;
      this.phase += LINE_HZ / sampleRate;
      if (this.phase < 1) continue;
      this.phase -= 1;
      this.frame[this.filled++] = toMulaw(this.sum / this.count);
      this.sum = this.count = 0;
      if (this.filled === FRAME_BYTES) {
        this.port.postMessage(this.frame);
        this.filled = 0;
      }
    }
  }

  play(output) {
    for (let number = 0; number < output.length; number++) {
      this.skipPlayed();
      const [bytes] = this.queue;
      if (!bytes) return;
      const before = Math.floor(this.place);
      const first = fromMulaw(bytes[before]);
      const second = before + 1 < bytes.length ? fromMulaw(bytes[before + 1]) : first;
      output[number] = first + (second - first) * (this.place - before);
      this.place += LINE_HZ / sampleRate;
    }
  }

  skipPlayed() {
    while (this.queue.length) {
      const [first] = this.queue;
      if (typeof first === "string") this.port.postMessage(first);
      else if (this.place < first.length) return;
      else this.place -= first.length;
      this.queue.shift();
    }
  }

  process([input], [output]) {
    if (input.length) this.record(input[0]);
    this.play(output[0]);
    return true;
  }
});
