// Data of the page, decoded on first use, and the formulas on them.

const contents = JSON.parse(document.getElementById("data").textContent);

const LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
const DIGITS = new Uint8Array(128);
for (let digit = 0; digit < 64; digit++) DIGITS[LETTERS.charCodeAt(digit)] = digit;

// Whole numbers in base 32, lowest digit first. They may exceed 32 bits, so no bit is shifted.
function decode(codes) {
  const numbers = [];
  let number = 0;
  let unit = 1;
  for (let i = 0; i < codes.length; i++) {
    const digit = DIGITS[codes.charCodeAt(i)];
    number += (digit & 31) * unit;
    if (digit & 32) {
      unit *= 32;
    } else {
      numbers.push(number);
      number = 0;
      unit = 1;
    }
  }
  return numbers;
}

// A value that is computed on first use.
function lazy(make) {
  let made;
  return () => (made ??= make());
}

const words = contents.words;
const frequencies = decode(contents.frequencyCodes);
const { beta, betaSum, tokens: countTokens, exact, shown, steps } = contents.counts;
// Number of tokens per unit of a count.
const unit = exact ? 1 : contents.corpus.tokens / Math.max(1, countTokens);

const topics = contents.topics.map((topic, id) => ({
  id,
  name: topic.name,
  coherence: topic.coherence,
  total: topic.total,
  share: topic.total / Math.max(1, countTokens),
  place: topic.place,
  near: topic.near,
  terms: lazy(() => terms(topic)),
  documents: lazy(() =>
    pairs(decode(topic.documentCodes)).map(([at, share]) => [at, share / 1000]),
  ),
  series: lazy(() => decode(contents.time.shareCodes[id]).map((share) => share / 10000)),
}));

// Topics by size, largest first, and the rank of each.
const bySize = topics
  .map((topic) => topic.id)
  .sort((a, b) => topics[b].total - topics[a].total || a - b);
const ranks = new Uint32Array(topics.length);
bySize.forEach((id, rank) => (ranks[id] = rank));

function pairs(numbers) {
  const out = [];
  for (let i = 0; i < numbers.length; i += 2) out.push([numbers[i], numbers[i + 1]]);
  return out;
}

// Candidates of a topic, words ascending, with the two logarithms of the relevance.
function terms(topic) {
  let word = 0;
  return pairs(decode(topic.wordCodes)).map(([gap, count]) => {
    word += gap;
    const probability = (count + beta) / (topic.total + betaSum);
    return {
      word,
      count,
      probability,
      logProbability: Math.log(probability),
      logFrequency: Math.log(frequencies[word] / countTokens),
    };
  });
}

// The top terms by relevance, λ ln φ + (1 − λ) ln(φ / p(w)); at equal values, the lower word first.
function ranked(id, lambda, n = shown) {
  const scored = topics[id].terms().map((term) => ({
    term,
    score: term.logProbability - (1 - lambda) * term.logFrequency,
  }));
  scored.sort((a, b) => b.score - a.score || a.term.word - b.term.word);
  return scored.slice(0, n).map(({ term }) => term);
}

// Whether two words are forms of one, such as model, models and modelling: they begin alike, and differ in
// at most their last letters.
function sameStem(one, other) {
  let alike = 0;
  while (alike < one.length && one[alike] === other[alike]) alike++;
  const [short, long] = [one.length, other.length].sort((a, b) => a - b);
  return alike >= 4 && alike >= short - 1 && long - alike <= 4;
}

// The name of a topic, or a few words that distinguish it, a stem once.
const LABEL_LAMBDA = 0.6;
const labels = new Map();
function label(id) {
  if (!labels.has(id)) {
    const chosen = [];
    for (const { word } of ranked(id, LABEL_LAMBDA)) {
      if (chosen.length === 3) break;
      if (!chosen.some((other) => sameStem(other, words[word]))) chosen.push(words[word]);
    }
    labels.set(id, topics[id].name === undefined ? chosen : [topics[id].name]);
  }
  return labels.get(id);
}

const documents = contents.documents.map((document, at) => ({
  at,
  number: document.number,
  title: document.title,
  text: document.text,
  date: document.date,
  tokens: document.tokens,
  unknown: document.unknown,
  topics: lazy(() =>
    pairs(decode(document.topicCodes)).map(([topic, share]) => ({ topic, share: share / 1000 })),
  ),
  words: lazy(() => documentWords(document)),
  order: lazy(() => (document.orderCodes === undefined ? null : decode(document.orderCodes))),
}));

// Index of a document in the page, by its number in the corpus.
const documentAt = new Map(documents.map((document) => [document.number, document.at]));

function documentWords(document) {
  const numbers = decode(document.wordCodes);
  const out = [];
  let word = 0;
  for (let i = 0; i < numbers.length; i += 3) {
    word += numbers[i];
    out.push({ word, topic: numbers[i + 1], tokens: numbers[i + 2] });
  }
  return out;
}

// The beginning of a document's text; or its first words, or the most frequent ones if the word order is
// not known.
function excerpt(document, n) {
  if (document.text !== undefined) return clip(document.text, 8 * n);
  const all = document.words();
  const order = document.order();
  const chosen = order ? order.slice(0, n).map((at) => all[at]) : byTokens(all).slice(0, n);
  return chosen.map(({ word }) => words[word]).join(" ");
}

function byTokens(all) {
  return [...all].sort((a, b) => b.tokens - a.tokens || a.word - b.word);
}

function documentName(document) {
  return document.title ?? `Document ${document.number}`;
}

// Topics of which each word is a candidate.
const topicsOfWords = lazy(() => {
  const found = new Map();
  for (const topic of topics) {
    for (const { word, probability } of topic.terms()) {
      if (!found.has(word)) found.set(word, []);
      found.get(word).push([topic.id, probability]);
    }
  }
  return found;
});

const lowerWords = lazy(() => words.map((word) => word.toLowerCase()));

// Topics that match a query, best first: the topic with that number, and those with a word that
// begins with the query, by the word's probability in the topic. Whole words come before prefixes.
function find(query) {
  const text = query.trim().toLowerCase();
  if (text === "") return null;
  const best = new Map();
  if (/^#?\d+$/.test(text)) {
    const id = Number(text.replace("#", ""));
    if (id < topics.length) best.set(id, { score: 3, word: null });
  }
  topics.forEach(({ id, name }) => {
    if (name?.toLowerCase().includes(text)) best.set(id, { score: 2, word: null });
  });
  const all = lowerWords();
  for (const [word, holders] of topicsOfWords()) {
    if (!all[word].startsWith(text)) continue;
    const whole = all[word] === text ? 1 : 0;
    for (const [id, probability] of holders) {
      const score = whole + probability;
      if (!best.has(id) || best.get(id).score < score) best.set(id, { score, word });
    }
  }
  return [...best.entries()]
    .sort((a, b) => b[1].score - a[1].score || a[0] - b[0])
    .map(([id, { word }]) => ({ id, word }));
}
