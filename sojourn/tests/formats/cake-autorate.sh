#!/usr/bin/env bash
# config.primary.sh
dl_if=ifb-wan # download interface
ul_if=wan     # upload interface
adjust_dl_shaper_rate=1
adjust_ul_shaper_rate=0
min_dl_shaper_rate_kbps=10000  # Kbit/s
base_dl_shaper_rate_kbps=25000
max_dl_shaper_rate_kbps="80000"
min_ul_shaper_rate_kbps=3000
base_ul_shaper_rate_kbps=8000
max_ul_shaper_rate_kbps=20000
connection_active_thr_kbps=2000
