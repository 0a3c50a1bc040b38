package query

import (
	"bytes"
	"strings"
	"time"
	"unicode"
)

// specialArguments are the functions that need more than their arguments:
// the clock, or a place to fail.
var specialArguments = map[string][2]int{
	"GETCURRENTDATETIME": {}, "GETCURRENTTIMESTAMP": {}, "GETCURRENTTICKS": {},
	"GETCURRENTDATETIMESTATIC": {}, "GETCURRENTTIMESTAMPSTATIC": {}, "GETCURRENTTICKSSTATIC": {},
	"REGEXMATCH":          {2, 3},
	"FULLTEXTCONTAINS":    {2, 2},
	"FULLTEXTCONTAINSALL": {2, anyNumber}, "FULLTEXTCONTAINSANY": {2, anyNumber},
}

// special compiles the functions of specialArguments.
var special = map[string]func(c *compiler, n callNode, args []expr) (expr, error){
	"GETCURRENTDATETIME":        current(date),
	"GETCURRENTTIMESTAMP":       current(timestamp),
	"GETCURRENTTICKS":           current(ticks),
	"GETCURRENTDATETIMESTATIC":  static(date),
	"GETCURRENTTIMESTAMPSTATIC": static(timestamp),
	"GETCURRENTTICKSSTATIC":     static(ticks),
	"REGEXMATCH":                compileRegex,
	"FULLTEXTCONTAINS":          fullText(func(found, _ int) bool { return found == 1 }),
	"FULLTEXTCONTAINSALL":       fullText(func(found, wanted int) bool { return found == wanted }),
	"FULLTEXTCONTAINSANY":       fullText(func(found, _ int) bool { return found > 0 }),
}

func timestamp(t time.Time) Value { return number(float64(t.UnixMilli())) }
func ticks(t time.Time) Value     { return number(ticksOf(t)) }

// A clock is the time at which it is evaluated.
type clock struct {
	now  func() time.Time
	form func(time.Time) Value
}

func (e clock) eval(*Slots) Value { return e.form(e.now()) }

func current(form func(time.Time) Value) func(*compiler, callNode, []expr) (expr, error) {
	return func(c *compiler, _ callNode, _ []expr) (expr, error) { return clock{c.now, form}, nil }
}

// static is the same time wherever the query says it.
func static(form func(time.Time) Value) func(*compiler, callNode, []expr) (expr, error) {
	return func(c *compiler, _ callNode, _ []expr) (expr, error) { return constant{form(c.start)}, nil }
}

// A regex is RegexMatch(text, pattern, modifiers).
type regex struct {
	at    int
	args  []expr
	ready *program // of constant pattern and modifiers
}

func compileRegex(c *compiler, n callNode, args []expr) (expr, error) {
	e := regex{at: n.textOffset(), args: args}
	if !isConstant(args[1:]) {
		return e, nil
	}
	pattern, ok := e.pattern(c.slots)
	if !ok {
		return constant{undefined}, nil
	}
	ready, reason := newProgram(pattern)
	if reason != "" {
		return nil, &Error{n.args[1].textOffset(), reason}
	}
	e.ready = ready
	return c.fold(e, args[:1]), nil
}

// pattern writes the modifiers m, s, i and x the way package regexp has them.
func (e regex) pattern(slots *Slots) (string, bool) {
	pattern := e.args[1].eval(slots)
	if pattern.Kind != String {
		return "", false
	}
	flags, s := "", string(pattern.Text)
	if len(e.args) == 3 {
		modifiers := e.args[2].eval(slots)
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

func (e regex) eval(slots *Slots) Value {
	ready := e.ready
	if ready == nil {
		pattern, ok := e.pattern(slots)
		if !ok || !slots.spend(perRegex+len(pattern)) {
			return undefined
		}
		var reason string
		if ready, reason = newProgram(pattern); reason != "" {
			slots.fail(e.at, reason)
			return undefined
		}
		slots.spend(ready.perRune * perRegex)
	}
	v := e.args[0].eval(slots)
	if v.Kind != String {
		return undefined
	}
	return ready.match(v.Text, slots)
}

// fullText looks for words as they are written, but for their case: the
// engine knows no languages and so no stems.
func fullText(enough func(found, wanted int) bool) func(*compiler, callNode, []expr) (expr, error) {
	return func(_ *compiler, n callNode, args []expr) (expr, error) {
		return newCall(n.name, func(a []Value) Value {
			if !are(String, a) {
				return undefined
			}
			all, found := words(a[0].Text), 0
			for _, phrase := range a[1:] {
				if w := words(phrase.Text); w != " " && strings.Contains(all, w) {
					found++
				}
			}
			return boolean(enough(found, len(a)-1))
		}, args), nil
	}
}

// fullTextSteps: the text is searched for every phrase.
func fullTextSteps(a []Value) int { return len(a) * (1 + len(a[0].Text)/readPerStep) }

// words is the words of s in lower case, each with a space around it.
func words(s []byte) string {
	fields := bytes.FieldsFunc(bytes.ToLower(s), func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) })
	return strings.TrimSuffix(" "+string(bytes.Join(fields, []byte(" "))), " ") + " "
}
