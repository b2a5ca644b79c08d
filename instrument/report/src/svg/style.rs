//! The look of the charts: classes over CSS variables that a page may set, with colours of their own for a file.
//!
//! The colours tell eight lines apart for all common kinds of colour blindness (after Okabe and Ito, darkened or
//! lightened until each has a contrast of 3:1 to the paper); dashes and marks say the same, because colour alone
//! never does.

/// Colours of a file that stands alone. `svg:root` is the file's own element; inside a page the root is another, so
/// that the page's variables rule.
pub(crate) const ROOT: &str = "svg:root{--paper:#fff;--ink:#1c2228;--muted:#57616b;--grid:#d9dee3;\
--c0:#0067a5;--c1:#c9540a;--c2:#00805d;--c3:#b34a86;--c4:#9a6b00;--c5:#2b8fc7;--c6:#6a4c9c;--c7:#5d6670;\
--good:#17733f;--warn:#9a6700;--bad:#c0282d;--band-warm-up:#7a8691;--band-drain:#7a8691;--band-step:#0067a5;\
--band-fault:#c0282d}\
@media screen and (prefers-color-scheme:dark){svg:root{--paper:#14181c;--ink:#e6eaee;--muted:#9aa5b0;\
--grid:#2c343c;--c0:#5aaee8;--c1:#f28b4b;--c2:#3fc79a;--c3:#e58fc0;--c4:#e6b84c;--c5:#9ad4f5;--c6:#b79ae8;\
--c7:#a9b3bd;--good:#4cc38a;--warn:#e6b84c;--bad:#ff7b7b;--band-warm-up:#9aa5b0;--band-drain:#9aa5b0;\
--band-step:#5aaee8;--band-fault:#ff7b7b}}";

/// The classes. `sN` strokes and `fN` fills with colour N; `d1` … `d3` dash; `m` is muted text; `e` and `c` anchor
/// texts at their end and centre; `k1` … `k5` are shades of density; `wash` makes an area light.
pub const RULES: &str = "\
.assay-figure{font-family:system-ui,-apple-system,'Segoe UI','DejaVu Sans',sans-serif;font-size:11px;\
max-width:100%;height:auto}\
.assay-figure text{fill:var(--ink,#1c2228);stroke:none}\
.assay-figure .paper{fill:var(--paper,#fff)}\
.assay-figure .head{font-size:14px;font-weight:600}\
.assay-figure text.m{fill:var(--muted,#57616b)}\
.assay-figure text.b{font-weight:600}\
.assay-figure .e{text-anchor:end}.assay-figure .c{text-anchor:middle}\
.assay-figure text.h{paint-order:stroke;stroke:var(--paper,#fff);stroke-width:3px;stroke-linejoin:round}\
.assay-figure .g{fill:none;stroke:var(--grid,#d9dee3);stroke-width:1}\
.assay-figure .gm{fill:none;stroke:var(--grid,#d9dee3);stroke-width:.5}\
.assay-figure .ax{fill:none;stroke:var(--muted,#57616b);stroke-width:1}\
.assay-figure .ln{fill:none;stroke-width:1.6;stroke-linejoin:round;stroke-linecap:round}\
.assay-figure .thin{stroke-width:1}\
.assay-figure .d1{stroke-dasharray:6 4}.assay-figure .d2{stroke-dasharray:2 3.5}\
.assay-figure .d3{stroke-dasharray:9 3 2 3}\
.assay-figure .few{stroke-dasharray:1.5 3;opacity:.75}\
.assay-figure .si{stroke:var(--ink,#1c2228)}.assay-figure .fi{fill:var(--ink,#1c2228)}\
.assay-figure .sm{stroke:var(--muted,#57616b)}.assay-figure .fm{fill:var(--muted,#57616b)}\
.assay-figure .s0{stroke:var(--c0,#0067a5)}.assay-figure .f0{fill:var(--c0,#0067a5)}\
.assay-figure .s1{stroke:var(--c1,#c9540a)}.assay-figure .f1{fill:var(--c1,#c9540a)}\
.assay-figure .s2{stroke:var(--c2,#00805d)}.assay-figure .f2{fill:var(--c2,#00805d)}\
.assay-figure .s3{stroke:var(--c3,#b34a86)}.assay-figure .f3{fill:var(--c3,#b34a86)}\
.assay-figure .s4{stroke:var(--c4,#9a6b00)}.assay-figure .f4{fill:var(--c4,#9a6b00)}\
.assay-figure .s5{stroke:var(--c5,#2b8fc7)}.assay-figure .f5{fill:var(--c5,#2b8fc7)}\
.assay-figure .s6{stroke:var(--c6,#6a4c9c)}.assay-figure .f6{fill:var(--c6,#6a4c9c)}\
.assay-figure .s7{stroke:var(--c7,#5d6670)}.assay-figure .f7{fill:var(--c7,#5d6670)}\
.assay-figure .sgood{stroke:var(--good,#17733f)}.assay-figure .fgood{fill:var(--good,#17733f)}\
.assay-figure .swarn{stroke:var(--warn,#9a6700)}.assay-figure .fwarn{fill:var(--warn,#9a6700)}\
.assay-figure .sbad{stroke:var(--bad,#c0282d)}.assay-figure .fbad{fill:var(--bad,#c0282d)}\
.assay-figure .hollow{fill:var(--paper,#fff);stroke-width:1.6}\
.assay-figure .none{fill:none}\
.assay-figure .wash{fill-opacity:.16}.assay-figure .half{fill-opacity:.55}\
.assay-figure .band-warm-up{fill:var(--band-warm-up,#7a8691);fill-opacity:.13}\
.assay-figure .band-drain{fill:var(--band-drain,#7a8691);fill-opacity:.13}\
.assay-figure .band-step{fill:var(--band-step,#0067a5);fill-opacity:.05}\
.assay-figure .band-fault{fill:var(--band-fault,#c0282d);fill-opacity:.13}\
.assay-figure .edge-fault{fill:none;stroke:var(--band-fault,#c0282d);stroke-width:1;stroke-dasharray:2 2}\
.assay-figure .edge-step{fill:none;stroke:var(--band-step,#0067a5);stroke-width:1;stroke-opacity:.5}\
.assay-figure .k{fill:none;stroke:var(--c0,#0067a5);shape-rendering:crispEdges}\
.assay-figure .k1{stroke-opacity:.14}.assay-figure .k2{stroke-opacity:.28}\
.assay-figure .k3{stroke-opacity:.46}.assay-figure .k4{stroke-opacity:.68}\
.assay-figure .k5{stroke-opacity:.95}";
