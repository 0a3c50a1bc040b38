package query

import (
	"bytes"
	"strings"
	"time"
	"unicode"
)

// specialArguments contains the minimum and maximum number of arguments of functions that do not depend on their
// arguments alone: they read the clock, draw random numbers, or report errors.
var specialArguments = map[string][2]int{
	"GETCURRENTDATETIME": {}, "GETCURRENTTIMESTAMP": {}, "GETCURRENTTICKS": {},
	"GETCURRENTDATETIMESTATIC": {}, "GETCURRENTTIMESTAMPSTATIC": {}, "GETCURRENTTICKSSTATIC": {},
	"NOW":                 {0, 2},
	"AGO":                 {2, 2},
	"RAND":                {},
	"REGEXMATCH":          {2, 3},
	"FULLTEXTCONTAINS":    {2, 2},
	"FULLTEXTCONTAINSALL": {2, unlimitedArguments}, "FULLTEXTCONTAINSANY": {2, unlimitedArguments},
}

// special compiles the functions in specialArguments.
var special = map[string]func(c *compiler, n callNode, args []expr) (expr, error){
	"GETCURRENTDATETIME":        currentTime(dateValue),
	"GETCURRENTTIMESTAMP":       currentTime(timestampValue),
	"GETCURRENTTICKS":           currentTime(ticksValue),
	"GETCURRENTDATETIMESTATIC":  staticTime(dateValue),
	"GETCURRENTTIMESTAMPSTATIC": staticTime(timestampValue),
	"GETCURRENTTICKSSTATIC":     staticTime(ticksValue),
	"NOW":                       currentTimePlus(1),
	"AGO":                       currentTimePlus(-1),
	"RAND":                      func(c *compiler, _ callNode, _ []expr) (expr, error) { return randomExpr{c.random}, nil },
	"REGEXMATCH":                compileRegex,
	"FULLTEXTCONTAINS":          fullText(func(found, _ int) bool { return found == 1 }),
	"FULLTEXTCONTAINSALL":       fullText(func(found, wanted int) bool { return found == wanted }),
	"FULLTEXTCONTAINSANY":       fullText(func(found, _ int) bool { return found > 0 }),
}

func timestampValue(t time.Time) Value { return numberValue(float64(t.UnixMilli())) }
func ticksValue(t time.Time) Value     { return numberValue(ticksOf(t)) }

// A clockExpr is the current time when it is evaluated.
type clockExpr struct {
	now  func() time.Time
	form func(time.Time) Value
}

func (e clockExpr) evalRow(*Slots) Value { return e.form(e.now()) }

// A randomExpr is a random number in [0, 1).
type randomExpr struct{ random func() float64 }

func (e randomExpr) evalRow(*Slots) Value { return numberValue(e.random()) }

func currentTime(form func(time.Time) Value) func(*compiler, callNode, []expr) (expr, error) {
	return func(c *compiler, _ callNode, _ []expr) (expr, error) { return clockExpr{c.now, form}, nil }
}

// staticTime compiles a function whose result is the same time during the whole query.
func staticTime(form func(time.Time) Value) func(*compiler, callNode, []expr) (expr, error) {
	return func(c *compiler, _ callNode, _ []expr) (expr, error) { return constantExpr{form(c.start)}, nil }
}

// A regexExpr is RegexMatch(text, pattern, modifiers).
type regexExpr struct {
	at    int
	args  []expr
	ready *program // compiled pattern, if pattern and modifiers are constant
}

func compileRegex(c *compiler, n callNode, args []expr) (expr, error) {
	e := regexExpr{at: n.textOffset(), args: args}
	if !isConstant(args[1:]) {
		return e, nil
	}
	pattern, ok := e.goPattern(c.slots)
	if !ok {
		return constantExpr{undefined}, nil
	}
	ready, reason := newProgram(pattern)
	if reason != "" {
		return nil, &Error{n.args[1].textOffset(), reason}
	}
	e.ready = ready
	return c.foldConstant(e, args[:1]), nil
}

// goPattern translates the modifiers m, s, i and x to the syntax of package regexp.
func (e regexExpr) goPattern(slots *Slots) (string, bool) {
	pattern := e.args[1].evalRow(slots)
	if pattern.Kind != String {
		return "", false
	}
	flags, s := "", string(pattern.Text)
	if len(e.args) == 3 {
		modifiers := e.args[2].evalRow(slots)
		if modifiers.Kind != String {
			return "", false
		}
		for _, m := range string(modifiers.Text) {
			switch {
			case strings.ContainsRune(flags, m):
			case m == 'm' || m == 's' || m == 'i':
				flags += string(m)
			case m == 'x':
				s = strings.Join(strings.Fields(s), "")
			default:
				return "", false
			}
		}
	}
	if flags != "" {
		s = "(?" + flags + ")" + s
	}
	return s, true
}

func (e regexExpr) evalRow(slots *Slots) Value {
	ready := e.ready
	if ready == nil {
		pattern, ok := e.goPattern(slots)
		if !ok || !slots.spendSteps(perRegex+len(pattern)) {
			return undefined
		}
		var reason string
		if ready, reason = newProgram(pattern); reason != "" {
			slots.recordFailure(e.at, reason)
			return undefined
		}
		slots.spendSteps(ready.perRune * perRegex)
	}
	v := e.args[0].evalRow(slots)
	if v.Kind != String {
		return undefined
	}
	return ready.matchText(v.Text, slots)
}

// fullText compiles a full-text function. It compares whole words, ignores case, and does not stem.
func fullText(enough func(found, wanted int) bool) func(*compiler, callNode, []expr) (expr, error) {
	return func(_ *compiler, n callNode, args []expr) (expr, error) {
		return newCall(n.name, func(a []Value) Value {
			if !areAll(String, a) {
				return undefined
			}
			all, found := normalizeWords(a[0].Text), 0
			for _, phrase := range a[1:] {
				if w := normalizeWords(phrase.Text); w != " " && strings.Contains(all, w) {
					found++
				}
			}
			return boolValue(enough(found, len(a)-1))
		}, args), nil
	}
}

// fullTextSteps counts one search of the text per phrase.
func fullTextSteps(a []Value) int { return len(a) * (1 + len(a[0].Text)/readPerStep) }

// normalizeWords returns the words of s in lower case, with a space on each side of every word.
func normalizeWords(s []byte) string {
	fields := bytes.FieldsFunc(bytes.ToLower(s), func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) })
	return strings.TrimSuffix(" "+string(bytes.Join(fields, []byte(" "))), " ") + " "
}
