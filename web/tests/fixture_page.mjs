//! The markup of the fixture page, in the shape that PAGE.md agrees on.

const charts = [["latency", "Response time"], ["rates", "Offered, goodput, failures"], ["outstanding", "Outstanding"], ["lag", "Own lag"]];

export function page({ css, js, policy, summary, index, trials, packed }) {
  const sections = [
    ["verdict", "fixture", "", header()],
    ["results", "Results", "What are the numbers?", results(summary)],
    ["distribution", "Distribution", "How slow is the slowest 1 in N?", distribution()],
    ["time", "Over time", "When was it slow?", perTrial(index, (i) => charts.map(([chart, title]) => timeChart(i, chart, title, trials[i])).join(""))],
    ["stages", "Stages", "Where in the pipeline?", perTrial(index, (i) => timeChart(i, "stages", "Stages", trials[i]))],
    ["nodes", "Generator, host and nodes", "What were they doing?", perTrial(index, (i) => `${multiples(i, index.trials[i], trials[i])}${lanes(i, trials[i])}`)],
  ];
  return `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta http-equiv="Content-Security-Policy" content="${policy}">
<meta name="viewport" content="width=device-width, initial-scale=1"><meta name="color-scheme" content="light dark">
<title>fixture</title><style>${css}</style></head><body>
<nav id="toc" aria-label="Sections"><ul>${sections.map(([key, title]) => `<li><a href="#r0-${key}">${key === "verdict" ? "Verdict" : title}</a></li>`).join("")}</ul></nav>
<main><article class="run" data-run="0">
${sections.map(([key, title, question, body], i) => `<section id="r0-${key}" class="section ${key}" aria-labelledby="h-${key}">${i === 0 ? "" : `<h2 id="h-${key}">${title}</h2><p class="question">${question}</p>`}${body}</section>`).join("\n")}
</article><section class="section" aria-labelledby="h-words"><h2 id="h-words">Words</h2><dl id="glossary"><dt>goodput</dt><dd id="g-goodput">rate of transactions that reached the final stage in time</dd></dl></section></main>
<script type="application/octet-stream" id="assay-data">${packed}</script>
<script>${js}</script></body></html>
`;
}

function header() {
  const tile = (what, value, below) => `<div class="card"><dt>${what}</dt><dd class="value">${value}</dd><dd class="below">${below}</dd></div>`;
  return `<div class="banner fail"><p class="word"><span class="mark" aria-hidden="true">✗</span> FAIL</p><h1 id="h-verdict">fixture</h1><p class="reason">p99 &lt; 100 ms is broken in rate=110/s.</p><p class="exit">Exit code 99: a threshold failed.</p></div>
<p class="asked">What does a queue look like that is frozen for a while? Its <span class="term" tabindex="0" aria-describedby="g-goodput" data-def="rate of transactions that reached the final stage in time">goodput</span> says so.</p>
<p class="answer">It keeps up with 90/s, where p99 is 40 ms; at 110/s, 20% does not get through and p99 is 2.18 s.</p>
<dl class="cards">${tile("p50 at 90/s", "8 ms", "900 samples beyond it")}${tile("p99 at 90/s", "40 ms", "18 samples beyond it")}${tile("goodput at 90/s", "90/s", "of 90/s offered")}${tile("failed, all settings", "175", "1.2% of all due")}</dl>`;
}

function results(summary) {
  const rows = summary.settings.map((setting, s) => {
    const trial = setting.trials[0];
    const at = (key) => `/settings/${s}/trials/0/${key}`;
    const worst = trial.worst_p99_ns;
    return `<tr><th scope="row">${setting.key}</th><td data-v="${trial.counts.due}" data-k="${at("counts/due")}">${trial.counts.due.toLocaleString("en-US")}</td><td data-v="${trial.counts.committed}" data-k="${at("counts/committed")}">${trial.counts.committed.toLocaleString("en-US")}</td><td class="${s === 2 ? "grey" : ""}" data-v="${worst}" data-k="${at("worst_p99_ns")}">${s === 2 ? "~" : ""}${(worst / 1e6).toFixed(1)} ms</td></tr>`;
  });
  return `<div class="table" role="group" aria-label="Results" tabindex="0"><table class="data" data-name="results"><caption>Results</caption><thead><tr><th scope="col" data-type="text">setting</th><th scope="col" data-type="number">due</th><th scope="col" data-type="number">committed</th><th scope="col" data-type="time">worst p99</th></tr></thead><tbody>${rows.join("")}</tbody></table></div>`;
}

function distribution() {
  const points = Array.from({ length: 40 }, (_, i) => `${60 + i * 17},${230 - 5 * i + 20 * Math.sin(i / 4)}`).join(" ");
  return `<figure class="chart" id="r0-fig-curve" data-name="curve"><figcaption><strong>Response time by percentile</strong></figcaption><svg xmlns="http://www.w3.org/2000/svg" class="assay-figure" role="img" viewBox="0 0 760 260" width="760" height="260" aria-labelledby="curve-t"><title id="curve-t">Response time by percentile</title><polyline fill="none" stroke="var(--c0)" stroke-width="1.6" points="${points}"/><text x="60" y="250" fill="var(--muted)" font-size="11">p50</text></svg>
<details class="as-table"><summary>Table</summary><div class="table" role="group" aria-label="Curve" tabindex="0"><table class="data" data-name="curve"><caption>Curve</caption><thead><tr><th scope="col" data-type="text">percentile</th><th scope="col" data-type="time">response time</th></tr></thead><tbody><tr><th scope="row">p50</th><td data-v="8000000">8 ms</td></tr><tr><th scope="row">p99</th><td data-v="40000000">40 ms</td></tr></tbody></table></div></details></figure>`;
}

function perTrial(index, body) {
  return index.trials.map((trial, i) => `<div class="trial" data-trial="${i}" data-key="${trial.key}" data-path="${trial.path}"><h3 class="trial-name">${trial.key}</h3>${body(i)}</div>`).join("");
}

function drawing(id, title, values, height) {
  const most = Math.max(...values.map((v) => v ?? 0), 1);
  const points = values.map((v, i) => `${((i / values.length) * 1000).toFixed(1)},${(height - (height - 10) * ((v ?? 0) / most)).toFixed(1)}`).join(" ");
  return `<svg xmlns="http://www.w3.org/2000/svg" class="assay-figure" role="img" viewBox="0 0 1000 ${height}" width="1000" height="${height}" aria-labelledby="${id}-t"><title id="${id}-t">${title}</title><polyline fill="none" stroke="var(--c0)" points="${points}"/></svg>`;
}

function timeChart(i, chart, title, trial) {
  const key = { latency: "p99_ns", rates: "offered", outstanding: "outstanding", lag: "own_lag_p99_ns", stages: "committed" }[chart];
  const id = `r0-t${i}-${chart}`;
  const values = trial.timeline.columns.map((c) => c[key]);
  return `<figure class="chart time" id="${id}" data-chart="${chart}" data-name="${chart}"><figcaption><strong>${title}</strong> Bands are shaded.</figcaption><div class="plot">${drawing(id, title, values, chart === "latency" ? 320 : 180)}</div><details class="as-table"><summary>Table</summary></details></figure>`;
}

function lanes(i, trial) {
  return trial.lanes.map((of) => {
    const id = `r0-t${i}-lanes-${of.name}`;
    const names = of.lanes.map((lane) => `${lane.source}.${of.name}`).join(" ");
    return `<figure class="chart time" id="${id}" data-chart="lanes" data-series="${names}" data-name="lanes-${of.name}"><figcaption><strong>Pages turned, a lane a node</strong></figcaption><div class="plot">${drawing(id, of.name, of.lanes[1].state, 76)}</div><details class="as-table"><summary>Table</summary></details></figure>`;
  }).join("");
}

function multiples(i, index, trial) {
  const names = [...new Set(index.series.map((s) => s.name))];
  return names.map((name) => {
    const mine = trial.series.filter((s) => s.name === name);
    const id = `r0-t${i}-series-${name}`;
    return `<figure class="chart time" id="${id}" data-chart="series" data-series="${mine.map((s) => `${s.source}.${s.name}`).join(" ")}" data-name="${name}"><figcaption><strong>${name}</strong></figcaption><div class="plot">${drawing(id, name, mine[0].mean, 130)}</div><details class="as-table"><summary>Table</summary></details></figure>`;
  }).join("");
}
