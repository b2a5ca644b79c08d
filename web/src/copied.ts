//! Tables as text: Markdown as shown, CSV with raw numbers.

export interface CopiedCell {
  text: string;
  /** The raw number, if it is one. */
  raw: string | null;
}

/** A pipe table; columns of numbers are aligned to the right. */
export function markdown(heads: string[], isNumber: boolean[], rows: CopiedCell[][]): string {
  const line = (cells: string[]) => `| ${cells.map((cell) => cell.replaceAll("|", "\\|")).join(" | ")} |`;
  const rule = heads.map((_, i) => (isNumber[i] === true ? "---:" : "---"));
  return [line(heads), line(rule), ...rows.map((row) => line(row.map((cell) => cell.text)))].join("\n") + "\n";
}

/** A text that no spreadsheet computes (OWASP, "CSV injection"); a signed number stays one. */
const harmless = (text: string) => (/^[=@]|^[+-](?![\d.,]*\d\s*%?$)/.test(text) ? `'${text}` : text);

/** RFC 4180 with raw numbers. */
export function csv(heads: string[], rows: CopiedCell[][]): string {
  const quoted = (text: string) => (/[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text);
  const line = (cells: string[]) => cells.map(quoted).join(",");
  const cells = (row: CopiedCell[]) => row.map((cell) => cell.raw ?? harmless(cell.text));
  return [line(heads.map(harmless)), ...rows.map((row) => line(cells(row)))].join("\r\n") + "\r\n";
}

/** Puts a text on the clipboard; from a file some browsers only allow the old way. */
export async function copy(text: string): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    const area = document.createElement("textarea");
    area.value = text;
    area.className = "unseen";
    document.body.append(area);
    area.select();
    const done = document.execCommand("copy");
    area.remove();
    return done;
  }
}
