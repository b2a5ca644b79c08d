//! The page of a run that goes on: figures that are told by server-sent events, and below them the report's own page in a frame,
//! a new one whenever there is one, scrolled and unfolded as the one before. At the end of the run the report takes its place.
//! It asks nobody but the server that it came from.

interface Figures {
  /** How many pages there have been in this trial. */
  page: number;
  phase: string;
  text: string;
}

/** The token, where one is needed. */
const query = location.search;
const text = document.getElementById("live") as HTMLElement;
const main = document.getElementById("main") as HTMLElement;
let frame: HTMLIFrameElement | undefined;
let shown = 0;
let coming = false;

const events = new EventSource(`events${query}`);
events.addEventListener("figures", (event) => {
  const figures = JSON.parse(event.data) as Figures;
  text.textContent = figures.text;
  document.documentElement.dataset.phase = figures.phase;
  if (figures.page > 0 && figures.page !== shown && !coming) {
    shown = figures.page;
    load();
  }
});
events.addEventListener("over", () => {
  events.close();
  location.replace(`report${query}${frame?.contentWindow?.location.hash ?? ""}`);
});
events.addEventListener("error", () => {
  text.textContent = "assay watch does not answer: it has ended, or it will be back in a moment.";
});

/** Loads the page as it is now beside the one that is shown, and then shows it. */
function load(): void {
  const next = document.createElement("iframe");
  next.title = "The report so far";
  next.className = "coming";
  coming = true;
  next.addEventListener("load", () => {
    if (frame !== undefined) {
      carryOver(frame, next);
      frame.remove();
    }
    next.className = "";
    frame = next;
    coming = false;
  });
  next.src = `report${query}${frame?.contentWindow?.location.hash ?? ""}`;
  main.append(next);
}

/** What the reader has opened, and where he is. */
function carryOver(from: HTMLIFrameElement, to: HTMLIFrameElement): void {
  const [before, after] = [from.contentDocument, to.contentDocument];
  if (before === null || after === null) return;
  const key = (it: HTMLDetailsElement) => `${it.closest("[id]")?.id ?? ""} ${it.querySelector("summary")?.textContent ?? ""}`;
  const open = new Map(Array.from(before.querySelectorAll("details"), (it) => [key(it), it.open]));
  for (const it of after.querySelectorAll("details")) it.open = open.get(key(it)) ?? it.open;
  to.contentWindow?.scrollTo(0, from.contentWindow?.scrollY ?? 0);
}
