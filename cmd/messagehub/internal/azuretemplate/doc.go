// Package azuretemplate writes what a hub needs on Azure, as listed in
// [deployment.Table], in the formats that Azure accepts: a template in JSON
// (ARM), the same template in Bicep, and a script of the Azure CLI. It also
// writes the files of deploy/azure for the default settings.
//
// A template is built once, as a model (model.go, expr.go), and written twice
// (arm.go, bicep.go), so that tests of the JSON also apply to the Bicep.
//
// The same table gives the same bytes, a template names only parameters and
// resources that it has, and no secret is written. The package makes no
// request: only az deployment group validate shows whether Azure accepts a
// template.
package azuretemplate
