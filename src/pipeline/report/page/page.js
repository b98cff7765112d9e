"use strict";(()=>{
const all=(s,of=document)=>[...of.querySelectorAll(s)];
const ago=t=>{const s=(Date.now()-Date.parse(t))/1e3;if(!(s>=0))return"";for(const[n,u]of[[86400,"day"],[3600,"hour"],[60,"minute"]])if(s>=n){const c=Math.floor(s/n);return`(${c} ${u}${c>1?"s":""} ago)`}return"(just now)"};
all("time").forEach(t=>t.textContent=ago(t.dateTime));
const key=c=>c?c.dataset.v!==undefined?+c.dataset.v:c.textContent.trim():"";
const less=(a,b)=>{const m=parseFloat(a),n=parseFloat(b);return typeof a=="number"&&typeof b=="number"?a-b:a===""?1:b===""?-1:!isNaN(m)&&!isNaN(n)&&m!==n?m-n:String(a).localeCompare(b)};
all("table.l,table.r").forEach(t=>{const heads=all("thead th",t),body=t.tBodies[0],first=[...body.rows];
heads.forEach((th,i)=>{const b=document.createElement("button");b.type="button";b.textContent=th.textContent;th.replaceChildren(b);
b.onclick=()=>{const was=th.getAttribute("aria-sort");heads.forEach(o=>o.removeAttribute("aria-sort"));
if(was==="descending"){body.append(...first);return}
const up=was?-1:1;th.setAttribute("aria-sort",up>0?"ascending":"descending");
body.append(...[...first].sort((a,b)=>up*less(key(a.cells[i]),key(b.cells[i]))))}})});
const ladder=document.querySelector("table.l");
if(ladder){const rows=[...ladder.tBodies[0].rows],tools=document.createElement("div");tools.className="tools";
const named=(text,of)=>{const l=document.createElement("label");l.append(text+" ",of);tools.append(l);return of};
const find=named("Filter",document.createElement("input"));find.type="search";
const pick=named("Show",document.createElement("select"));
[["","all"],["bad","failed"],["open","unknown"],["emu","emulated"],["good","on the device"]].forEach(([v,t])=>pick.add(new Option(t,v)));
const count=document.createElement("span");count.setAttribute("role","status");tools.append(count);
const run=()=>{const words=find.value.toLowerCase().split(/\s+/);let n=0;
rows.forEach(r=>{const text=r.textContent.toLowerCase(),on=words.every(w=>text.includes(w))&&(!pick.value||r.classList.contains(pick.value));r.hidden=!on;n+=on});
count.textContent=find.value||pick.value?`${n} of ${rows.length}`:""};
find.oninput=pick.onchange=run;ladder.parentElement.before(tools)}
const open=()=>{let at=location.hash&&document.getElementById(location.hash.slice(1));for(at=at&&at.closest("details");at;at=at.parentElement.closest("details"))at.open=true};
addEventListener("hashchange",open);open();
let shut=[];addEventListener("beforeprint",()=>{shut=all("details:not([open])");shut.forEach(d=>d.open=true)});
addEventListener("afterprint",()=>shut.forEach(d=>d.open=false));
})();
