// Load profiles, written as the articles' own command lines, and their fit to this machine.
export { fitLoad, isAtRate, type FitOptions, type Load } from './load/fit.ts';
export { h2load, type H2loadOptions } from './load/h2load.ts';
export { ab, weighttp, wrk } from './load/http1.ts';
export { readLoadLine, type LoadLine } from './load/line.ts';
export { vegeta, type VegetaOptions } from './load/vegeta.ts';
