// What the dashboards are checked against: Grafana's published types, put side by side under one name.

import type { AnnotationQuery, DataQuery, Dashboard as Published } from "@grafana/schema";
import type * as heatmap from "@grafana/schema/dist/types/raw/composable/heatmap/panelcfg/x/types.gen";
import type * as stat from "@grafana/schema/dist/types/raw/composable/stat/panelcfg/x/types.gen";
import type * as statetimeline from "@grafana/schema/dist/types/raw/composable/statetimeline/panelcfg/x/types.gen";
import type * as table from "@grafana/schema/dist/types/raw/composable/table/panelcfg/x/types.gen";
import type * as text from "@grafana/schema/dist/types/raw/composable/text/panelcfg/x/types.gen";
import type * as timeseries from "@grafana/schema/dist/types/raw/composable/timeseries/panelcfg/x/types.gen";

// The queries of the Prometheus data source are published with the source itself, since 13.0: these are its fields.
interface PrometheusQuery extends DataQuery {
  editorMode?: "builder" | "code";
  expr: string;
  format?: "time_series" | "table" | "heatmap";
  instant?: boolean;
  interval?: string;
  legendFormat?: string;
  range?: boolean;
}

// Likewise what it reads of an annotation.
interface PrometheusAnnotation extends Omit<AnnotationQuery, "target"> {
  target: PrometheusQuery;
  textFormat?: string;
  titleFormat?: string;
  useValueForTime?: boolean;
}

interface Board extends Omit<Published, "annotations"> {
  annotations?: { list?: PrometheusAnnotation[] };
}

type Nothing = Record<string, never>;

export interface Checked {
  dashboard: Board;
  query: PrometheusQuery;
  heatmap: { options: heatmap.Options; custom: heatmap.FieldConfig };
  stat: { options: stat.Options; custom: Nothing };
  "state-timeline": { options: statetimeline.Options; custom: statetimeline.FieldConfig };
  table: { options: table.Options; custom: table.FieldConfig };
  text: { options: text.Options; custom: Nothing };
  timeseries: { options: timeseries.Options; custom: timeseries.FieldConfig };
}
