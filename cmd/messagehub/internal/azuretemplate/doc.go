// Package azuretemplate writes the Azure resources of a hub, which
// [deployment.Table] lists, in the formats that Azure accepts: a template in
// JSON (ARM), the same template in Bicep, and a script of the Azure CLI. It
// also writes the files of deploy/azure, for the default settings.
//
// A template is built once, as a model (model.go, expr.go), and written twice
// (arm.go, bicep.go), so that tests of the JSON also apply to the Bicep.
//
// The same table produces the same bytes. A template refers only to parameters
// and resources that it declares, and contains no secret. The package sends no
// request to Azure. To test whether Azure accepts a template, run az deployment
// group validate.
package azuretemplate
