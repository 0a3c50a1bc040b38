package armtest_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/cmd/messagehub/internal/azuretemplate/armtest"
)

const sound = `{
  "$schema": "s", "contentVersion": "1.0.0.0",
  "parameters": {
    "name": {"type": "string", "defaultValue": "a", "allowedValues": ["a", "b"], "metadata": {"description": "d"}},
    "on": {"type": "bool", "defaultValue": true, "metadata": {"description": "d"}}
  },
  "resources": [
    {"type": "X/y", "apiVersion": "1", "name": "[parameters('name')]", "properties": {"is": "[if(parameters('on'), 'it''s', 'off')]"}},
    {"type": "X/y/z", "apiVersion": "1", "name": "[format('{0}/{1}', parameters('name'), 'c')]", "condition": "[parameters('on')]",
     "properties": {"of": "[reference(resourceId('X/y', parameters('name')), '1').color]"}, "dependsOn": ["[resourceId('X/y', parameters('name'))]"]}
  ],
  "outputs": {"text": {"type": "string", "value": "[[no expression]"}}
}`

var options = armtest.Options{Runtime: func(r *armtest.Resource, path string) string { return r.ID + " " + path }}

func TestEvaluate_ReturnsWhatATemplateCreates(t *testing.T) {
	d, err := armtest.Evaluate([]byte(sound), map[string]any{"name": "b"}, options)
	require.NoError(t, err)
	require.Len(t, d.Resources, 2)
	require.Equal(t, "X/y/b", d.Resources[0].ID)
	require.Equal(t, map[string]any{"is": "it's"}, d.Resources[0].Body["properties"])
	require.Equal(t, "X/y/b/z/c", d.Resources[1].ID)
	require.Equal(t, map[string]any{"of": "X/y/b color"}, d.Resources[1].Body["properties"])
	require.Equal(t, "[no expression]", d.Outputs["text"])

	d, err = armtest.Evaluate([]byte(sound), map[string]any{"on": false}, options)
	require.NoError(t, err)
	require.Len(t, d.Resources, 1)
	require.Equal(t, map[string]any{"is": "off"}, d.Resources[0].Body["properties"])
}

func TestEvaluate_RefusesWhatDoesNotResolve(t *testing.T) {
	for _, tc := range []struct{ name, old, replacement, want string }{
		{"a parameter that is not there", "[parameters('on')]", "[parameters('off')]", "no parameter off"},
		{"a parameter that nothing uses", "[if(parameters('on'), 'it''s', 'off')]", "x", ""},
		{"a function that is not there", "if(parameters", "iff(parameters", "no function iff"},
		{"a resource that is not there", "reference(resourceId('X/y', parameters('name'))", "reference(resourceId('X/y', 'other')", "no resource X/y/other"},
		{"another version", "'1').color", "'2').color", "has the version 1, not 2"},
		{"no property", "'1').color", "'1')", "a property of the resource is missing"},
		{"no dependency", `"dependsOn": ["[resourceId('X/y', parameters('name'))]"]`, `"dependsOn": []`, "does not depend on it"},
		{"a dependency that is not there", `"dependsOn": ["[`, `"dependsOn": ["X/y/other", "[`, "depends on X/y/other, which is not there"},
		{"a circle", `"properties": {"is"`, `"dependsOn": ["[resourceId('X/y/z', parameters('name'), 'c')]"], "properties": {"is"`, "depend on each other"},
		{"a parent that is not there", "format('{0}/{1}', parameters('name'), 'c')", "format('{0}x/{1}', parameters('name'), 'c')", "no resource X/y/ax"},
		{"a name with too few parts", "format('{0}/{1}', parameters('name'), 'c')", "format('{0}', parameters('name'))", "has not as many parts as its type"},
		{"a placeholder that is not there", "'{0}/{1}'", "'{0}/x'", "no {1}"},
		{"two resources of one name", `"resources": [`, `"resources": [{"type": "X/y", "apiVersion": "1", "name": "a"},`, "X/y/a occurs twice"},
		{"a text that does not end", "'off')]", "'off)]", "a text does not end"},
		{"more than an expression", "'off')]", "'off') 1]", "unexpected"},
		{"a value that is not allowed", `"defaultValue": "a"`, `"defaultValue": "c"`, "is not allowed"},
		{"a default of another type", `"defaultValue": true`, `"defaultValue": 1`, "is no bool"},
		{"no description", `"metadata": {"description": "d"}}
  }`, `"metadata": {}}
  }`, "has no description"},
		{"an output of another type", `"text": {"type": "string"`, `"text": {"type": "int"`, "is no int"},
		{"a member that is not there", `"contentVersion"`, `"variable": {}, "contentVersion"`, "unknown field"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			require.Equal(t, 1, min(1, strings.Count(sound, tc.old)))
			text := strings.Replace(sound, tc.old, tc.replacement, 1)
			if tc.want == "" {
				text, tc.want = strings.ReplaceAll(text, `"condition": "[parameters('on')]",`, ""), "parameter on is not used"
			}
			_, err := armtest.Evaluate([]byte(text), nil, options)
			require.ErrorContains(t, err, tc.want)
		})
	}
}
