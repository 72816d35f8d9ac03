"""Writes golden.json: what Python's re makes of texts chosen to be awkward.  Run: python3 golden.py > golden.json

Only characters that Unicode 14 already had are used, so that any later Python or Go agrees.
"""
import json, random, re, sys, unicodedata

TOKEN = re.compile(r"[^\W_]{1,6}|[^\w\s]|_")
texts = [
    "", " ", "\n\t", "a", "abcdef", "abcdefg", "abcdefghijklm", "Hello, worldwide_web 2", "a_b__c", "___",
    "3.14159265358979", "x\x1cy\x1dz\x1ew\x1fv", "a\x00b\x01c\x7fd", "a\x85b\xa0c", "a\u1680b\u2000c\u200ad\u2028e\u2029f\u202fg\u205fh\u3000i",
    "zero\u200bwidth\u200djoin\ufeffer\u2060x", "e\u0301te\u0301", "\u00e9t\u00e9\u00c5", "na\u00efve caf\u00e9s\u2019", "\u4f60\u597d\u4e16\u754c\u4f60\u597d\u4e16\u754c",
    "\u3053\u3093\u306b\u3061\u306f\u3001\u4e16\u754c", "\u0627\u0644\u0639\u0631\u0628\u064a\u0629 \u0661\u0662\u0663", "\u0939\u093f\u0928\u094d\u0926\u0940", "\ud55c\uad6d\uc5b4", "\u2160\u2161 \u00bd \u00b2 \u2460 \u3220 \u0bf0",
    "\U0001f600\U0001f468\u200d\U0001f469\u200d\U0001f467", "\U0001d400\U0001d401 \U00020000\U0002a6d6 \U0001f1e9\U0001f1ea", "\u00aa\u00ba\u02b0\u02c6\u02c7", "\u203f\u2040\ufe4f_\uff3f", "\u00ad\u0600\u180e\u061c",
    "\ufffd\ufffe\U0010ffff\ue000", "<doc p1>\nText.\n</doc>\n", "I\u0307\u0131\u0130\u00df\u1e9e", "a\u0300bcdefghij", "\u1d2c\u2071\u207f \u2090", "0\u0660\u06f0\u07c0\u0966\uff10\U0001d7ce",
    "\r\n\x0b\x0cx", "don't stop\u2026 now\u2014ok", "\u16ee\u3007\u3021\u12369", "\ufb01\ufb02 \u01c5",
]
rnd = random.Random(7)
pool = [c for c in range(0x20, 0x3000) if unicodedata.category(chr(c)) not in ("Cn", "Cs")]
for _ in range(60):
    texts.append("".join(chr(rnd.choice(pool) if rnd.random() < 0.7 else rnd.choice(b"ab1_ \n")) for _ in range(rnd.randrange(5, 40))))
json.dump([{"text": t, "pieces": TOKEN.findall(t)} for t in texts], sys.stdout, indent=0)
print()
