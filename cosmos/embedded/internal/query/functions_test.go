package query

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// subject is the document c of the expressions of this file.
const subject = `{"id":"x","_rid":"AAAAAAAAAAAAAAAAAAAAAw==","t":true,"n":3,"s":"Tea Cup","u":"äÖ🍵","a":[1,"2",null,{"k":1,"l":{"m":2,"n":3}}],"o":{"a":1,"b":[2]},"z":null,"d":"2020-01-31T23:59:59.1234567Z"}`

func TestExpressions_HaveTheirDocumentedValues(t *testing.T) {
	for rule, list := range map[string]string{
		"arithmetic is of numbers": `
			1 + 2 * 3 = 7 | (1 + 2) * 3 = 9 | 7 % 3 = 1 | -7 % 3 = -1 | 7 / 2 = 3.5 | -c.n = -3 | +c.n = 3 | - -1 = 1 | 5.5 % 2 = 1.5
			1 - 1 - 1 = -1 | 1 / 0 = undefined | 1 % 0 = undefined | 1 + '1' = undefined | c.s + 1 = undefined | c.none + 1 = undefined | null + 1 = undefined | -c.s = undefined
			1e300 * 1e300 = undefined | 0.1 + 0.2 = 0.30000000000000004 | 1e21 + 0 = 1e+21 | 1000000 * 1000000 = 1000000000000`,
		"bits are 32": `
			100 >> 2 = 25 | 100 << 2 = 400 | 100 >>> 0 = 100 | (100 & 1000) = 96 | (100 ; 1000) = 1004 | (100 ^ 1000) = 908 | ~5 = -6
			-1 >>> 0 = 4294967295 | -1 >> 1 = -1 | 1 << 31 = -2147483648 | 1 << 32 = 1 | 4294967296 ; 1 = 1 | 'a' & 1 = undefined | ~'a' = undefined
			1 ; 2 ^ 3 & 2 = 1 | 1 + 1 << 2 = 8`,
		"strings are joined by ;;": `
			'a' ;; 'b' = "ab" | c.s ;; '!' = "Tea Cup!" | 'a' ;; 1 = undefined | c.none ;; 'a' = undefined | 'a' ;; 'b' ;; 'c' = "abc"`,
		"undefined is unknown": `
			true AND c.none = undefined | false AND c.none = false | c.none AND false = false | true OR c.none = true | c.none OR true = true | false OR c.none = undefined
			NOT c.none = undefined | NOT 1 = undefined | 1 AND true = undefined | 1 OR true = true | NOT true = false | NOT NOT true = true | NOT false AND false = false
			true OR true AND false = true | (true OR true) AND false = false`,
		"other types are unequal, and never greater": `
			(1 = 1) = true | (1 = '1') = false | (1 != '1') = true | (1 <> 2) = true | (1 < '2') = undefined | (1 < 2) = true | (2 <= 2) = true | ('b' > 'a') = true | (true > false) = true
			(null = null) = true | (null >= null) = true | (c.none = c.none) = undefined | (c.none != 1) = undefined | (c.z = null) = true | (c.none = null) = undefined
			(c.o = {"b": [2.0], a: 1}) = true | (c.o = {"a": 1}) = false | ([1, 2] = [1, 2]) = true | ([1, 2] = [2, 1]) = false | ([1] < [2]) = undefined | ({} >= {}) = undefined
			(1 = 1.0) = true | (-0 = 0) = true | ('a' = 'A') = false | ('é' = 'é') = true`,
		"ranges and lists": `
			(2 BETWEEN 1 AND 3) = true | (0 BETWEEN 1 AND 3) = false | ('b' BETWEEN 'a' AND 'c') = true | (1 BETWEEN 'a' AND 3) = undefined | (c.none BETWEEN 1 AND 2) = undefined
			(1 NOT BETWEEN 1 AND 3) = false | (1 IN (1, 2)) = true | (3 IN (1, '3')) = false | (3 NOT IN (1, 2)) = true | (c.none IN (1)) = undefined | (null IN (null)) = true
			(1 IN (c.none, 1)) = true | (1 IN (c.none, 2)) = undefined | ({"a": 1} IN ({"a": 1})) = true`,
		"patterns": `
			(c.s LIKE 'Tea%') = true | (c.s LIKE '%cup') = false | (c.s LIKE '%Cup') = true | (c.s LIKE '%a C%') = true | (c.s LIKE 'Tea_Cup') = true | (c.s LIKE 'Tea_') = false
			(c.s LIKE 'Te[a-c] Cup') = true | (c.s LIKE 'Te[^a-c] Cup') = false | (c.s LIKE '[STU]%') = true | ('20%' LIKE '20^%' ESCAPE '^') = true | ('20x' LIKE '20^%' ESCAPE '^') = false
			('20-30%' LIKE '20-30[%]') = true | ('_n' LIKE '[_]n') = true | ('xn' LIKE '[_]n') = false | (']' LIKE ']') = true | ('[' LIKE '[[]') = true | ('' LIKE '%') = true | ('' LIKE '_') = false
			(1 LIKE '1') = undefined | ('1' LIKE 1) = undefined | (c.none LIKE '%') = undefined | (c.s NOT LIKE 'x%') = true | ('ö' LIKE '_') = true | ('aXbXc' LIKE 'a%X%c') = true | ('a[' LIKE 'a[') = true`,
		"choices": `
			true ? 1 : 2 = 1 | false ? 1 : 2 = 2 | c.none ? 1 : 2 = 2 | 1 ? 1 : 2 = 2 | true ? false ? 1 : 2 : 3 = 2 | false ? 1 : true ? 2 : 3 = 2 | 1 = 1 ? 'y' : 'n' = "y"
			c.none ?? 1 = 1 | c.z ?? 1 = null | c.n ?? 1 = 3 | c.none ?? c.nothing ?? 2 = 2 | c.none ?? c.nothing = undefined
			IIF(true, 1, 2) = 1 | IIF(1, 1, 2) = 2 | IIF(c.none, 1, 2) = 2 | CHOOSE(1, 'a', 'b') = "a" | CHOOSE(2, 'a', 'b') = "b" | CHOOSE(3, 'a', 'b') = undefined | CHOOSE(0, 'a') = undefined`,
		"steps": `
			c.o.a = 1 | c['o']["b"][0] = 2 | c.a[3].l.m = 2 | c.a[9] = undefined | c.s.x = undefined | c.a.x = undefined | c.o[0] = undefined | c[@key] = 3 | c.a[c.n - 3] = 1 | c[LOWER('N')] = 3
			[1, 2][1] = 2 | {"x": {"y": 5}}.x.y = 5 | @list[0] = 1 | c.a[c.n / 2] = undefined | c.u = "äÖ🍵" | 'ä\u00d6\ud83c\udf75' = "äÖ🍵" | "it's" = "it's" | 'it\'s' = "it's" | '\t\n\\' = "\t\n\\"`,
		"types": `
			IS_DEFINED(c.none) = false | IS_DEFINED(c.z) = true | IS_NULL(c.z) = true | IS_NULL(c.none) = false | IS_BOOL(c.t) = true | IS_NUMBER(c.n) = true | IS_NUMBER(c.s) = false | IS_STRING(c.s) = true
			IS_ARRAY(c.a) = true | IS_OBJECT(c.o) = true | IS_OBJECT(c.a) = false | IS_PRIMITIVE(c.z) = true | IS_PRIMITIVE(c.a) = false | IS_PRIMITIVE(c.none) = false | IS_INTEGER(3) = true | IS_INTEGER(9223372036854775807) = true | IS_INTEGER(-9223372036854775808) = true | IS_INTEGER(9223372036854779999) = false
			IS_INTEGER(3.5) = false | IS_INTEGER('3') = false | IS_FINITE_NUMBER(3) = true | IS_FINITE_NUMBER('x') = false`,
		"strings": `
			CONCAT('a', 'b', 'c') = "abc" | CONCAT('a', 1) = undefined | CONTAINS(c.s, 'a C') = true | CONTAINS(c.s, 'A c') = false | CONTAINS(c.s, 'A c', true) = true | CONTAINS(c.s, 'A c', false) = false
			CONTAINS(c.n, '3') = undefined | CONTAINS(c.s, c.none) = undefined | STARTSWITH(c.s, 'Tea') = true | STARTSWITH(c.s, 'tea', true) = true | ENDSWITH(c.s, 'CUP', true) = true | ENDSWITH(c.s, 'CUP') = false
			StringEquals('a', 'A') = false | StringEquals('a', 'A', true) = true | StringEquals('a', 1) = undefined | INDEX_OF('abcabc', 'c') = 2 | INDEX_OF('abcabc', 'c', 3) = 5 | INDEX_OF('abc', 'x') = -1
			INDEX_OF(c.u, 'Ö') = 1 | INDEX_OF('abc', 'a', 9) = -1 | LEFT('abc', 2) = "ab" | LEFT('abc', 9) = "abc" | LEFT('abc', 0) = "" | LEFT('abc', -1) = "" | LEFT('abc', 1.5) = undefined | RIGHT('abc', 2) = "bc"
			RIGHT('abc', 9) = "abc" | RIGHT('abc', 0) = "" | RIGHT(1, 1) = undefined | SUBSTRING('abcde', 1, 2) = "bc" | SUBSTRING('abcde', 3, 9) = "de" | SUBSTRING('abcde', 9, 1) = "" | SUBSTRING(c.u, 2, 1) = "🍵"
			LENGTH('abc') = 3 | LENGTH(c.u) = 3 | LENGTH(1) = undefined | LOWER(c.s) = "tea cup" | UPPER(c.u) = "ÄÖ🍵" | TRIM('  a b ') = "a b" | LTRIM(' a ') = "a " | RTRIM(' a ') = " a" | TRIM('-_-a-_-', '-_') = "a" | TRIM('-- a --', '-') = " a " | LTRIM('AdventureWorks', 'Adventure') = "Works" | LTRIM('a', '') = "a" | RTRIM('xaxx', 'x') = "xa" | TRIM('a', 1) = undefined | REPLACE('aXbX', 'X', '--') = "a--b--"
			REPLACE('abc', '', 'x') = "abc" | REPLICATE('ab', 3) = "ababab" | REPLICATE('ab', 0) = "" | REPLICATE('ab', -1) = undefined | REPLICATE('ab', 5001) = undefined | REPLICATE('', 99999) = "" | REVERSE('abc') = "cba"
			REVERSE(c.u) = "🍵Öä" | StringSplit('a,b,,c', ',') = ["a","b","","c"] | StringJoin(['a', 'b'], '-') = "a-b" | StringJoin([1], '-') = undefined | StringJoin([], '-') = "" | StringSplit('ab', '') = ["ab"] | StringSplit('', '') = [""]
			CONTAINS_ALL_CI(c.s, 'TEA', 'cup') = true | CONTAINS_ALL_CS(c.s, 'TEA', 'Cup') = false | CONTAINS_ALL_CI(c.s, c.none, 'tea') = undefined | CONTAINS_ALL_CI(c.s, c.none, 'pot') = false | CONTAINS_ALL_CS(c.n, '3') = undefined
			CONTAINS_ANY_CI(c.s, 'pot', 'CUP') = true | CONTAINS_ANY_CS(c.s, 'pot', 'CUP') = false | CONTAINS_ANY_CI(c.s, c.none, 'tea') = true | CONTAINS_ANY_CS(c.s, c.none, 'pot') = undefined
			LASTINDEXOF('abcdeabc', 'abc') = 5 | LASTINDEXOF('abcdeabc', 'abc', 6) = 0 | LASTINDEXOF('abcdeabc', 'abc', 7) = 5 | LASTINDEXOF('abcdeabc', 'abc', 99) = 5 | LASTINDEXOF('abc', 'x') = -1 | LASTINDEXOF(c.u, '🍵') = 2 | LASTINDEXOF('', 'a', 0) = -1
			LASTINDEXOF('abc', 'a', -1) = undefined | LASTINDEXOF(1, 'a') = undefined`,
		"regular expressions": `
			RegexMatch('abcd', 'abc') = true | RegexMatch('abcd', 'ABC') = false | RegexMatch('abcd', 'ABC', 'i') = true | RegexMatch('a\nb', '^b$', 'm') = true | RegexMatch('a\nb', 'a.b') = false
			RegexMatch('a\nb', 'a.b', 's') = true | RegexMatch('abcd', 'a b c', 'x') = true | RegexMatch('abcd', 'A B', 'ix') = true | RegexMatch(1, 'a') = undefined | RegexMatch('a', 1) = undefined
			RegexMatch('a', 'a', 'q') = undefined | RegexMatch(c.s, LOWER('TEA'), 'i') = true | RegexMatch(c.none, 'a') = undefined | RegexMatch(c.s, SUBSTRING(c.s, 0, 1)) = true`,
		"conversions": `
			ToString(1.5) = "1.5" | ToString(true) = "true" | ToString(null) = "null" | ToString('x') = "x" | ToString(c.o) = "{\"a\":1,\"b\":[2]}" | ToString(c.none) = undefined | ToString(NaN) = "NaN" | ToString(Infinity) = "Infinity" | ToString(-Infinity) = "-Infinity"
			StringToNumber('3.14') = 3.14 | StringToNumber(' 60 ') = 60 | StringToNumber('1.000000') = 1 | StringToNumber('-1.79769e+308') = -1.79769e+308 | StringToNumber('0xA') = undefined | StringToNumber('NaN') = undefined
			StringToNumber(3) = undefined | StringToBoolean('true') = true | StringToBoolean(' false ') = false | StringToBoolean('TRUE') = undefined | StringToNull('null') = null | StringToNull('x') = undefined
			StringToArray('[1, "a"]') = [1,"a"] | StringToArray('{}') = undefined | StringToArray("['a']") = undefined | StringToObject('{"a": [1]}') = {"a":[1]} | StringToObject('[]') = undefined | DOCUMENTID(c) = 3 | DOCUMENTID(c.o) = undefined`,
		"arrays": `
			ARRAY_LENGTH(c.a) = 4 | ARRAY_LENGTH(c.o) = undefined | ARRAY_CONCAT([1], [2, 3], []) = [1,2,3] | ARRAY_CONCAT([1], 2) = undefined | ARRAY_CONTAINS(c.a, 1) = true | ARRAY_CONTAINS(c.a, 2) = false
			ARRAY_CONTAINS(c.a, null) = true | ARRAY_CONTAINS(c.a, {"k": 1}) = false | ARRAY_CONTAINS(c.a, {"k": 1}, true) = true | ARRAY_CONTAINS(c.a, {"k": 2}, true) = false | ARRAY_CONTAINS(c.a, {"l": {"m": 2}}, true) = true
			ARRAY_CONTAINS(c.a, {"k": 1, "l": {"n": 3, "m": 2}}) = true | ARRAY_CONTAINS(c.s, 1) = undefined | ARRAY_CONTAINS(c.a, c.none) = undefined | ARRAY_CONTAINS_ANY(c.a, 7, '2') = true | ARRAY_CONTAINS_ANY(c.a, 7) = false
			ARRAY_CONTAINS_ALL(c.a, 1, '2') = true | ARRAY_CONTAINS_ALL(c.a, 1, 7) = false | ARRAY_CONTAINS_ALL(1, 1) = undefined | ARRAY_CONTAINS_ANY([1], 1, c.none) = true | ARRAY_CONTAINS_ANY([1], 2, c.none) = undefined | ARRAY_CONTAINS_ALL([1], 1, c.none) = undefined | ARRAY_CONTAINS_ALL([1], 2, c.none) = false | ARRAY_SLICE(c.a, 1, 2) = ["2",null] | ARRAY_SLICE([1, 2, 3], -2) = [2,3]
			ARRAY_SLICE([1, 2, 3], -2, 1) = [2] | ARRAY_SLICE([1, 2, 3], 5) = [] | ARRAY_SLICE([1, 2, 3], 1, -1) = [] | ARRAY_SLICE([1, 2, 3], -9) = [1,2,3] | ARRAY_SLICE('abc', 1) = undefined
			SetIntersect([1, 2, 2, 3], [2, 3, 4]) = [2,3] | SetIntersect([1, 2, 'a'], ['a', 1, 'a']) = ["a",1] | SetUnion([1, 2, 2], [2, 3.0]) = [1,2,3] | SetUnion([1], 2) = undefined | SetIntersect([{"a": 1, "b": 2}], [{"b": 2, "a": 1}]) = [{"b":2,"a":1}]
			SetDifference([1, 2, 6, 7], [1, 2, 3]) = [6,7] | SetDifference([1, 1], []) = [1] | SetDifference([], [1]) = [] | SetDifference([{"a": 1, "b": 2}], [{"b": 2, "a": 1}]) = [] | SetDifference(1, [1]) = undefined
			SetEqual([1, 2, 3, 3], [3, 2, 1]) = true | SetEqual([], [1]) = false | SetEqual([1], ['1']) = false | SetEqual([1], 1) = undefined
			ARRAY_AVG([1, -2.7, 3, -4, c.none]) = -0.675 | ARRAY_AVG([12, 'a']) = undefined | ARRAY_AVG([]) = undefined | ARRAY_SUM([1, 2, 3.5]) = 6.5 | ARRAY_SUM([1, null]) = undefined | ARRAY_SUM(1) = undefined
			ARRAY_MAX([12, 'abc', true, null]) = "abc" | ARRAY_MIN([12, 'abc', true, null]) = null | ARRAY_MAX(['abc', 'ABC']) = "abc" | ARRAY_MIN([]) = undefined | ARRAY_MAX([1, [2]]) = undefined | ARRAY_MIN(c.o) = undefined
			ARRAY_MEDIAN([4, 1, 3, 2]) = 2.5 | ARRAY_MEDIAN([7.8, 1, 3.3]) = 3.3 | ARRAY_MEDIAN([]) = undefined | ARRAY_MEDIAN([1, 'a']) = undefined | ARRAY_MEDIAN('a') = undefined
			ObjectToArray(c.o) = [{"k":"a","v":1},{"k":"b","v":[2]}] | ObjectToArray({"x": 1}, 'name', 'value') = [{"name":"x","value":1}] | ObjectToArray([1]) = undefined | [c.none, 1] = [1] | {"a": c.none, "b": 1} = {"b":1}`,
		"mathematics": `
			ABS(-1.5) = 1.5 | ABS('a') = undefined | ABS(c.none) = undefined | CEILING(1.2) = 2 | CEILING(-1.2) = -1 | FLOOR(1.8) = 1 | FLOOR(-1.2) = -2 | TRUNC(-1.8) = -1 | ROUND(2.4) = 2 | ROUND(2.5) = 3 | ROUND(-2.5) = -3
			ROUND(2.345, 2) = 2.35 | ROUND(1234, -2) = 1200 | SIGN(-3) = -1 | SIGN(0) = 0 | SIGN(3) = 1 | SQRT(9) = 3 | SQRT(-1) = undefined | SQUARE(3) = 9 | POWER(2, 10) = 1024 | EXP(0) = 1 | LOG(1) = 0 | LOG(8, 2) = 3
			LOG(0) = undefined | LOG(2, 10) = 0.3010299956639812 | LOG(1000, 10) = 3 | LOG(1, 1) = undefined | LOG(0, 2) = undefined | LOG10(1000) = 3 | LOG10(5) = 0.6989700043360189 | LOG10(0.1) = -1 | LOG10(0) = undefined | LOG10(-1) = undefined | TAN(PI()/2) = 16331239353195370 | TAN(124.1332) = -24.80651023035602 | TAN(1) = 1.5574077246549023 | TAN(-1) = -1.5574077246549023 | PI() = 3.141592653589793 | SIN(0) = 0 | COS(0) = 1 | TAN(0) = 0 | COT(0) = undefined | ASIN(2) = undefined | ACOS(1) = 0 | ATAN(0) = 0 | ATN2(0, 1) = 0
			DEGREES(PI()) = 180 | RADIANS(180) = 3.141592653589793 | NumberBin(37.665) = 37 | NumberBin(37.665, 10) = 30 | NumberBin(-37, 10) = -40 | NumberBin(5, 0) = undefined`,
		"integers": `
			IntAdd(20, 10) = 30 | IntAdd(1.5, 1) = undefined | IntSub(5, 7) = -2 | IntMul(3, 4) = 12 | IntDiv(7, 2) = 3 | IntDiv(1, 0) = undefined | IntMod(7, 4) = 3 | IntMod(1, 0) = undefined | IntBitAnd(15, 25) = 9
			IntBitOr(15, 25) = 31 | IntBitXor(15, 25) = 22 | IntBitNot(5) = -6 | IntBitLeftShift(16, 4) = 256 | IntBitRightShift(16, 4) = 1 | IntBitLeftShift(1, -1) = undefined | IntAdd('1', 2) = undefined`,
		"dates": `
			GetCurrentDateTime() = "2026-03-04T12:00:00.1234567Z" | GetCurrentDateTimeStatic() = "2026-03-04T12:00:00.1234567Z" | GetCurrentTimestamp() = 1772625600123 | GetCurrentTicks() = 17726256001234568
			GetCurrentTimestampStatic() = 1772625600123 | DateTimeAdd('yyyy', 1, '2020-02-29T00:00:00Z') = "2021-02-28T00:00:00.0000000Z" | DateTimeAdd('mm', 1, c.d) = "2020-02-29T23:59:59.1234567Z"
			DateTimeAdd('mm', -1, '2020-03-31') = "2020-02-29T00:00:00.0000000Z" | DateTimeAdd('d', 1, c.d) = "2020-02-01T23:59:59.1234567Z" | DateTimeAdd('hh', -24, c.d) = "2020-01-30T23:59:59.1234567Z" | DateTimeAdd('s', 1, c.d) = "2020-02-01T00:00:00.1234567Z"
			DateTimeAdd('ns', 500, '2020-01-01') = "2020-01-01T00:00:00.0000005Z" | DateTimeAdd('x', 1, c.d) = undefined | DateTimeAdd('d', 1.5, c.d) = undefined | DateTimeAdd('d', 1, 'x') = undefined | DateTimeAdd('d', 9e15, c.d) = undefined
			DateTimeDiff('day', '2020-01-01T01:02:03.1234527Z', '2020-01-03T01:02:03.1234567Z') = 2 | DateTimeDiff('yyyy', '2028-01-01T01:02:03.1234527Z', '2020-01-03T01:02:03.1234567Z') = -8
			DateTimeDiff('hh', '2020-01-01T01:00:00.1234527Z', '2020-01-01T01:59:59.1234567Z') = 0 | DateTimeDiff('month', '2020-01-31', '2020-02-01') = 1 | DateTimeDiff('ms', '2020-01-01', '2020-01-01T00:00:01Z') = 1000
			DateTimeDiff('day', '1969-12-31T23:00:00Z', '1970-01-01') = 1 | DateTimePart('yyyy', c.d) = 2020 | DateTimePart('mm', c.d) = 1 | DateTimePart('dd', c.d) = 31 | DateTimePart('hh', c.d) = 23 | DateTimePart('mi', c.d) = 59
			DateTimePart('ss', c.d) = 59 | DateTimePart('ms', c.d) = 123 | DateTimePart('mcs', c.d) = 123456 | DateTimePart('ns', c.d) = 123456700 | DateTimePart('q', c.d) = undefined | DateTimeFromParts(2020, 9, 4) = "2020-09-04T00:00:00.0000000Z"
			DateTimeFromParts(2017, 4, 20, 13, 15, 20, 3456789) = "2017-04-20T13:15:20.3456789Z" | DateTimeFromParts(2020, 13, 1) = undefined | DateTimeFromParts(2021, 2, 29) = undefined | DateTimeFromParts(-1, 1, 1) = undefined
			DateTimeToTicks('2020-01-02T03:04:05.6789123Z') = 15779342456789124 | DateTimeToTimestamp('2020-07-09') = 1594252800000 | DateTimeToTimestamp('x') = undefined | TicksToDateTime(15943368134166472) = "2020-07-09T23:20:13.4166472Z"
			TimestampToDateTime(1594227912345) = "2020-07-08T17:05:12.3450000Z" | TimestampToDateTime(-1) = "1969-12-31T23:59:59.9990000Z" | TimestampToDateTime(1.5) = undefined | TimestampToDateTime(9e15) = undefined
			DateTimeBin('2021-01-08T18:35:00.0000000Z', 'hh') = "2021-01-08T18:00:00.0000000Z" | DateTimeBin('2021-01-08T18:35:00Z', 'hh', 4) = "2021-01-08T16:00:00.0000000Z" | DateTimeBin('2021-01-08', 'day', 7, '2021-01-01') = "2021-01-08T00:00:00.0000000Z"
			DateTimeBin('1969-12-31T23:00:00Z', 'day') = "1969-12-31T00:00:00.0000000Z" | DateTimeBin('2021-01-08T18:35:00Z', 'hh', 5, '1601-01-01') = "2021-01-08T14:00:00.0000000Z" | DateTimeBin('1601-01-02T05:00:00Z', 'day', 2) = "1601-01-01T00:00:00.0000000Z"
			DateTimeBin('2021-01-08', 'day', 0) = undefined | DateTimeBin('x', 'day') = undefined | DateTimeBin('2021-01-08', 'year') = undefined
			YEAR(c.d) = 2020 | MONTH('2000-12-10T10:00:00') = 12 | DAY(c.d) = 31 | DAY('x') = undefined | DAY('2020-02-03 10:00:00Z') = 3 | DAY('2020-02-03Z') = 3
			NOW() = "2026-03-04T12:00:00.1234567Z" | NOW('yyyy', -1) = "2025-03-04T12:00:00.1234567Z" | AGO('ss', 30) = "2026-03-04T11:59:30.1234567Z" | AGO('yyyy', -1) = "2027-03-04T12:00:00.1234567Z" | NOW('x', 1) = undefined | AGO('dd', 'x') = undefined
			IS_DATETIME(c.d) = true | IS_DATETIME('2024-12-12Z') = true | IS_DATETIME('2024-12-12 20:21:25.123Z') = true | IS_DATETIME('2024-12-12T20Z') = false | IS_DATETIME('2024-12-12 20:21:25.') = false | IS_DATETIME('2024-12-12T20:21:25.12345678') = false
			IS_DATETIME('2024-13-12') = false | IS_DATETIME('2024-12-12T20:21Z') = false | IS_DATETIME(1) = false | IS_DATETIME(c.none) = false
			DATETIMEFORMAT(c.d, 'yyyyMMdd') = "20200131" | DATETIMEFORMAT(c.d, 'To\\da\\y i\\s: yyyy-MM-ddTHH:mm:ss.fff') = "Today is: 2020-01-31T23:59:59.123" | DATETIMEFORMAT('2024-10-10 14:40:20', 'ss.FFF H') = "20. 14"
			DATETIMEFORMAT(c.d, 'd MMM yy, hh:mm tt') = "31 Jan 20, 11:59 PM" | DATETIMEFORMAT(c.d, 'dddd.FFFFFFF') = "Friday.1234567" | DATETIMEFORMAT(c.d, 'yyy') = undefined | DATETIMEFORMAT('x', 'yyyy') = undefined | DATETIMEFORMAT(c.d, 1) = undefined | DATETIMEFORMAT(c.d, 'H\\') = "23"`,
		"words": `
			FullTextContains(c.s, 'tea') = true | FullTextContains(c.s, 'te') = false | FullTextContains(c.s, 'tea cup') = true | FullTextContains(c.s, 'cup tea') = false | FullTextContains(c.s, '') = false | FullTextContains(c.n, 'x') = undefined
			FullTextContainsAll(c.s, 'cup', 'tea') = true | FullTextContainsAll(c.s, 'cup', 'pot') = false | FullTextContainsAny(c.s, 'pot', 'tea') = true | FullTextContainsAny(c.s, 'pot') = false`,
	} {
		t.Run(rule, func(t *testing.T) {
			doc := mustCompact(t, subject)
			given := map[string]Value{"@key": textValue("n"), "@list": {Kind: Array, Text: []byte("[1,2]")}}
			for _, tc := range strings.FieldsFunc(list, func(r rune) bool { return r == '|' || r == '\n' }) {
				at := strings.LastIndex(tc, " = ")
				if at < 0 {
					continue // the input contains white space around expressions
				}
				expression, want := strings.ReplaceAll(strings.TrimSpace(tc[:at]), ";", "|"), strings.TrimSpace(tc[at+3:])
				q := mustParse(t, "SELECT VALUE "+expression+" FROM c", given)
				got, err := runQuery(q, [][]byte{doc})
				require.NoError(t, err)
				if want == "undefined" {
					assert.Empty(t, got, expression)
					continue
				}
				assert.Equal(t, want, strings.Join(got, " "), expression)
				checkNested(t, expression, given, got)
			}
		})
	}
}

// checkNested checks that an expression has the same values in a subquery as in the main query.
func checkNested(t *testing.T, expression string, given map[string]Value, want []string) {
	q := mustParse(t, "SELECT VALUE x FROM (SELECT VALUE "+expression+" FROM c) AS x", given)
	got, err := runQuery(q, [][]byte{mustCompact(t, subject)})
	require.NoError(t, err)
	assert.Equal(t, want, got, expression)
}
